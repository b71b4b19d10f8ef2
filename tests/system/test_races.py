"""The kernel with KCSAN: its in-kernel tests, the programs whose threads interact, and
planted data races that it must report. On one CPU a race is with an interrupt or a thread
that is scheduled in between."""
import pytest

from checkers import (MEETINGS, SIDE_BY_SIDE, check_failed_allocations,
                      check_in_kernel, check_machine, check_plant,
                      check_program, results)
from tiers import realtime

# At 8 ns an instruction some interrupts take this kernel longer than their period:
# profile_storm would never end.
pytestmark = realtime()


def of_programs():
    return results("races", SIDE_BY_SIDE["races"], MEETINGS)


def test_in_kernel():
    check_in_kernel("races", SIDE_BY_SIDE["races"])


@pytest.mark.parametrize("program", MEETINGS)
def test_program(program):
    check_program(of_programs()[program])


def test_machine():
    check_machine(of_programs()[None])


def test_allocations_failed():
    check_failed_allocations(of_programs()["failalloc"].output)


@pytest.mark.parametrize("plant,report,smp", [
    ("deep-recursion", "kernel stack overflow", 2),
    ("shift-too-far", "ubsan: .*shift", 2),
    # On one CPU only an interrupt can race.
    ("unmasked-counter", "kcsan: data race", 1),
    ("unlocked-counter", "kcsan: data race", 2),
])
def test_planted_bug(plant, report, smp):
    check_plant("races", plant, report, smp)
