"""The kernel with KASAN, UBSan and LOCKDEP: its in-kernel tests, the guest programs, and
planted bugs that the checkers must report. Programs whose threads do not interact run in
virtual time."""
import os
import re
import signal
import subprocess
import time

import pytest

from checkers import (ALONE, FINE_CLOCK, MEETINGS, SIDE_BY_SIDE,
                      check_failed_allocations, check_in_kernel, check_machine,
                      check_plant, check_program, options, results)
from machine import VM, read, vm
from tiers import realtime


def of_programs(alone):
    return results("addresses", 1, ALONE, *FINE_CLOCK) if alone else \
        results("addresses", SIDE_BY_SIDE["addresses"], MEETINGS)


@realtime()
def test_in_kernel():
    check_in_kernel("addresses", SIDE_BY_SIDE["addresses"])


@pytest.mark.parametrize("program", ALONE + tuple(
    pytest.param(name, marks=realtime()) for name in MEETINGS))
def test_program(program):
    check_program(of_programs(program in ALONE)[program])


@pytest.mark.parametrize("alone", (True, pytest.param(False, marks=realtime())))
def test_machine(alone):
    check_machine(of_programs(alone)[None])


@realtime()
def test_allocations_failed():
    check_failed_allocations(of_programs(False)["failalloc"].output)


@realtime()
@pytest.mark.parametrize("plant,report", [
    ("shift-too-far", "ubsan: .*shift"),
    ("signed-overflow", "ubsan: .*overflows"),
    ("index-out-of-bounds", "(ubsan|kasan): .*out of bounds"),
    ("null-member", "ubsan: .*null pointer"),
    ("use-after-free", "kasan: .*free"),
    ("heap-overflow", "kasan: "),
    ("stack-overflow", "kasan: .*stack"),
    ("global-overflow", "kasan: .*global"),
    ("double-free", "kasan: .*free"),
    ("freed-pages", "kasan: .*free"),
    ("lock-inversion", "lockdep: .*both orders"),
    ("sleep-under-spinlock", "lockdep: may sleep"),
    ("interrupt-unsafe-lock", "lockdep: an interrupt"),
    ("interrupt-unsafe-chain", "lockdep: an interrupt .* 'plant b'"),
    ("lock-twice", "lockdep: .*again"),
    ("lock-not-held", "lockdep: 'plant a' must be held"),
    ("mutex-not-held", "lockdep: 'plant m' must be held"),
    ("deep-recursion", "kernel stack overflow"),
    ("write-after-free", "kasan: .*free"),
    ("forgotten-wake", "wakes: 'plant w' is true for 10 s, and nobody wakes"),
])
def test_planted_bug(plant, report):
    check_plant("addresses", plant, report, smp=2)


@realtime()
def test_a_late_wake_is_not_reported(tmp_path):
    """Although the host stops the machine for longer than the check waits."""
    console = tmp_path / "console"
    with subprocess.Popen(
            [VM, "--console", "--console-log", console, *options("addresses", tests=True),
             "--kargs", "plant=late-wake", "--smp", "2"], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as machine:
        while machine.poll() is None and "plant: not woken yet" not in read(console):
            time.sleep(0.05)
        os.killpg(machine.pid, signal.SIGSTOP)
        time.sleep(12)
        os.killpg(machine.pid, signal.SIGCONT)
        output = machine.communicate()[0]
    assert "plant: late-wake was NOT reported" in output, output


@realtime()
@pytest.mark.parametrize("plant,report", [
    ("spinlock-to-user", "lockdep: a thread goes back to user mode with 1 locks"),
    ("mutex-to-user", "lockdep: a thread goes back to user mode with 1 locks"),
    ("uninit-stack", r"uninit: .* never written \(stack\)"),
    ("uninit-heap", r"uninit: .* never written \(kmalloc-1024\)"),
])
def test_planted_bug_in_a_call(plant, report):
    """A bug planted in the system call that writes to /dev/plant is reported."""
    result = vm(f"echo {plant} >/dev/plant; echo survived",
                *options("addresses", tests=True), smp=2)
    assert result.status == 125 and "survived" not in result.output, result
    assert re.search(f"PANIC: {report}", result.console), result


@realtime()
@pytest.mark.parametrize("plant,lost", [
    ("fork-leak", r"leak: 5 times struct pointer_table, .*\n(  .*\n)*  \w+ fork_leak\+"),
    ("vnode-leak", r"leak: struct tmpfs_node at \w+ counts 21 references, \d pointers "),
])
def test_planted_leak_in_a_call(plant, lost):
    result = vm(f"echo {plant} >/dev/plant; echo survived",
                *options("addresses", tests=True), smp=2)
    assert result.status != 0 and "survived" in result.output, result
    assert re.search(lost, result.console, re.M), result
