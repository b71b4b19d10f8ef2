"""The kernel that looks for data races (KCSAN): its own tests, the guest programs,
and the bugs that it must find. On one CPU the other side of a race is an interrupt
or a thread that got its turn in between."""
import pytest

from checkers import (CPUS, MEETINGS, PROGRAMS, check_failed_allocations,
                      check_in_kernel, check_machine, check_plant,
                      check_program, passes, results)
from tiers import realtime

# At 8 ns an instruction this kernel takes longer for some interrupts than there is
# between two: profile_storm never ends.
pytestmark = realtime()


def of(smp):
    return results("races", smp, MEETINGS if smp == 1 else PROGRAMS)


@CPUS
def test_in_kernel(smp):
    check_in_kernel("races", smp)


@passes(MEETINGS, PROGRAMS)
def test_program(program, smp):
    check_program(of(smp)[program])


@CPUS
def test_machine(smp):
    check_machine(of(smp)[None])


@CPUS
def test_allocations_failed(smp):
    check_failed_allocations(of(smp)["failalloc"].output)


@pytest.mark.parametrize("plant,report,smp", [
    ("deep-recursion", "kernel stack overflow", 2),
    ("shift-too-far", "ubsan: .*shift", 2),
    # An interrupt of the own CPU is the only other one on one CPU.
    ("unmasked-counter", "kcsan: data race", 1),
    ("unlocked-counter", "kcsan: data race", 2),
])
def test_planted_bug(plant, report, smp):
    check_plant("races", plant, report, smp)
