"""The scheduler's bounds, as schedtest measures them: on one CPU in QEMU with -icount,
on several in Bochs. Both run in virtual time, so that bounds hold on any host."""
import re

import pytest

from bochs import bochs
from machine import LONG_PATIENCE, vm

EXACT = ("--icount", "4")


def test_all_promises_on_one_cpu():
    result = vm("schedtest", *EXACT, smp=1, timeout=LONG_PATIENCE)
    assert result.status == 0, result
    assert result.output.count(": ok") == 2 + 1 + 4 + 1, result
    assert "it hides" in result.output and ": seen" in result.output, result


# Numbers of threads that are no multiple of the CPUs; five seconds of each.
@pytest.mark.parametrize("smp, threads", ((2, 3), (4, 5)))
def test_equal_threads_get_equal_time(smp, threads):
    result = bochs(f"schedtest -s 5 -t {threads} fair", smp=smp)
    assert result.status == 0, result
    assert f"{threads} equal CPU-bound threads on {smp} CPUs" in result.output
    assert len(re.findall(r"^  thread \d", result.output,
                          re.MULTILINE)) == threads, result


def test_unknown_fairness_is_said():
    result = vm("dmesg", "--kargs", "fair=task", *EXACT, smp=1)
    assert "fair=task: unknown; fair=user is what there is" in result.output, result


@pytest.mark.parametrize("threads", (20, 100))
def test_users_get_equal_time_on_one_cpu(threads):
    """With fair=user; without it, test_all_promises_on_one_cpu."""
    result = vm(f"schedtest -t {threads} users", *EXACT, "--kargs", "fair=user", smp=1)
    assert "due 50.00 %: ok" in result.output, result


# A thread uses one CPU at most.
@pytest.mark.parametrize("smp, threads, due", ((2, 20, 50), (2, 100, 50), (4, 20, 25)))
def test_users_get_equal_time(smp, threads, due):
    result = bochs(f"schedtest -s 5 -t {threads} users", smp=smp, kargs="fair=user")
    assert f"due {due}.00 %: ok" in result.output, result


@pytest.mark.parametrize("smp", (2, 4))
def test_interactive_threads_run_at_once(smp):
    result = bochs("schedtest -s 5 -b 8 latency", smp=smp)
    assert result.status == 0, result
    assert f"8 CPU-bound ones on each of {smp} CPUs" in result.output, result


# The timer that statclock has and reports: its own, the LAPIC if clock events have the
# PIT, or none.
@pytest.mark.parametrize("options, by", (
    ((), "hpet"),
    (("--kargs", "acpi=off"), "pit"),
    (("--kargs", "timer=pit"), "lapic"),
    (("--kargs", "acpi=off", "--cpu", "qemu32,-apic"), "the clock's events")))
def test_statclock_sees_who_hides(options, by):
    result = vm("schedtest hide; echo $?; dmesg | grep statclock",
                *EXACT, *options, smp=1)
    assert f"at random, by {by}" in result.output, result
    assert "it hides" in result.output and ": seen" in result.output, result
    said = "shares that of the clock's events" if "events" in by else by
    assert said in result.output.splitlines()[-1], result


def test_statclock_runs_only_while_somebody_needs_it():
    result = vm("""
        count() { awk '/hpet/ { n += $2 } END { print n }' /proc/interrupts; }
        a=$(count); sleep 2; b=$(count)
        sleep 2 </dev/statclock; c=$(count); sleep 2; d=$(count)
        echo idle $((b - a)) used $((c - b)) after $((d - c))
        """, *EXACT, smp=1)
    found = re.search(r"idle (\d+) used (\d+) after (\d+)", result.output)
    idle, used, after = (int(n) for n in found.groups())
    assert idle == 0 and after <= 1, result
    assert 200 <= used <= 310, result


def test_help_and_mistakes():
    result = vm("""schedtest --help; echo status $?
        schedtest nonsense; echo status $?; schedtest -s 0; echo status $?
        schedtest --what; echo status $?""", smp=1)
    statuses = re.findall(r"status (\d)", result.output)
    assert statuses == ["0", "2", "2", "2"], result
    for word in ("fair", "latency", "nice", "hide", "--seconds"):
        assert word in result.output, result
