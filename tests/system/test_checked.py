"""Checks of every kernel with checkers (docs/debugging.md): failed allocations, memory
leaks, and writes to freed memory."""
import re

import pytest

from machine import vm
from checkers import FINE_CLOCK, NOTHING_LOST, options
from damage import cases
from tiers import realtime

# Steps of start-up, by the function that calls all their allocations: of those with
# the same callers one fails.
STEPS = ("arch_init_memory", "start_scheduling", "smp_start", "kthread_create",
         "tty_init", "initrd_unpack", "task_start_init", "init_thread")
STEP_MAX = 200


def checked(command, kargs="", kernel="addresses", smp=2, clock=FINE_CLOCK):
    """Runs a command, or boots the kernel without one."""
    how = ["--kargs", kargs, *options(kernel, tests="plant=" in kargs), *clock]
    if command is None:
        how.append("--console")
    return vm(command, *how, smp=smp)


def nothing_lost(result):
    return NOTHING_LOST in result.console


def start_up_without(allocation, smp):
    """Start-up works, or the kernel reports what it had no memory for. False if there
    is no such allocation."""
    result = checked("echo works", f"fail_alloc={allocation}", smp=smp,
                     clock=(*FINE_CLOCK, "--no-tests"))
    if "fail_alloc: no memory for this allocation" not in result.console:
        assert result.output == "works\n" and nothing_lost(result), result
        return False
    if result.output == "works\n":
        return True
    assert result.status in (125, 126), result
    panics = re.findall("KERNEL PANIC: (.*)", result.console)
    if panics:
        assert "no memory" in panics[0], result
    else:  # no terminal, so no shell: already reported
        assert "tty: no " in result.console, result
        assert nothing_lost(result), result
    return True


@pytest.mark.parametrize("step", STEPS)
def test_start_up(step):
    n = 1
    while start_up_without(f"{n},{step},once", smp=2 if step == "smp_start" else 1):
        n += 1
        assert n < STEP_MAX
    assert n > 1, f"there is no allocation below {step}"


def test_network_stack():
    """The first socket starts it: lwIP takes a timer without memory for a broken
    invariant of its own, so kernel/net/timers.c needs none."""
    result = checked("/test/udp", "fail_alloc=1,net_stack_start", smp=1)
    assert result.status == 0 and "ok " in result.output and nothing_lost(result), result


TOOLS_STEP = 60  # of their allocations, in `make test`


def test_tools():
    """Strobe's tools without one of their own allocations: they end, with an error or
    killed for lack of a page, and leave no session and no memory. CASES=1: each one."""
    result = checked(f"/test/failalloc tools {cases(TOOLS_STEP)}", smp=1)
    assert result.status == 0 and nothing_lost(result), result
    for tool in "profile", "sprofile", "cprofile", "trace", "sensors", "top", "sysinfo":
        assert re.search(rf"^ok {tool}, without [1-9]", result.output, re.MULTILINE), result


def test_sensors_from_start_up_on():
    """sensors= takes mutexes where that may be done, and patches code."""
    result = checked("sensors | grep -c ' open '", "sensors=all")
    assert result.status == 0 and int(result.output) >= 6, result


def test_unknown_failure():
    for wrong in "everything", "1,init_thread,always":
        result = checked(None, f"fail_alloc={wrong}")
        assert result.status == 125, result
        assert f"fail_alloc={wrong}" in result.output, result


@realtime()
@pytest.mark.parametrize("kernel", ("addresses", "races"))
@pytest.mark.parametrize("smp", (1, 4))
def test_nothing_lost(kernel, smp):
    """Killed, profiled and still running programs leak nothing."""
    result = checked("""
        seq 2000 | sort -r | gzip | gunzip | tail -n 1
        sleep 100 & sleep 0.2; kill -9 $!
        profile -o /dev/null sleep 0.2 >/dev/null 2>&1
        mkdir -p /tmp/a/b && ln -s b /tmp/a/c && rm -rf /tmp/a
        sleep 100 & yes >/dev/null & echo done""", kernel=kernel, smp=smp, clock=())
    assert result.output == "1\ndone\n", result
    assert nothing_lost(result), result
    assert "are still running" not in result.console, result


@realtime()
@pytest.mark.parametrize("kernel", ("addresses", "races"))
def test_no_false_alarm(kernel):
    """Threads that end during power-off are not reported as leaks."""
    result = checked(None, "plant=no-leak", kernel=kernel, smp=4, clock=())
    assert result.status == 0 and nothing_lost(result), result


@pytest.mark.parametrize("plant,what", (
    ("leak", r"leak: [1-9] times kmalloc-64, .*\n(.*\n)*.*lose_objects"),
    ("frame-leak", r"leak: [1-9] times 4096 bytes .*\n(.*\n)*.*lose_frames"),
    ("vmap-leak", r"leak: \d+ times 4096 bytes .*\n(.*\n)*.*lose_ranges"),
    ("reference-leak", r"leak: struct file at .* counts 21 references, [1-9] "
                       r"pointers .*\n(.*\n)*.*lose_references")))
def test_planted_leaks(plant, what):
    result = checked(None, f"plant={plant}", smp=1)
    assert result.status == 1, result
    assert re.search(what, result.output), result


CANARY = "KERNEL PANIC: canary: the stack frame of stack_overflow_by_one was overwritten"


def test_planted_overflow_of_a_stack():
    """In a kernel without checkers, and in one without KASAN."""
    plain = vm(None, "--console", "--kargs", "plant=stack-overflow", smp=1)
    races = checked(None, "plant=stack-overflow", kernel="races", smp=1)
    assert plain.status == races.status == 125, (plain, races)
    assert CANARY in plain.output and CANARY in races.output, (plain, races)


@pytest.mark.parametrize("plant", ("write-after-free", "double-free"))
def test_planted_misuse(plant):
    """Without KASAN, use of freed memory is found as well."""
    result = checked(None, f"plant={plant}", kernel="races", smp=1)
    assert result.status == 125, result
    assert "KERNEL PANIC: heap: " in result.output, result
    assert "it was freed last by" in result.output, result
