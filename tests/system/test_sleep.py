"""The accuracy and cost of sleeps, and no ticks on idle or single-thread CPUs: in
virtual time, so exact."""
import re

import pytest

from machine import vm

US = 1000


def timer_interrupts(output):
    """Timer interrupts of each CPU, for each /proc/interrupts in the output."""
    return [[int(n) for n in line.split()[1:-2]]
            for line in output.splitlines()
            if re.search(r" LAPIC +timer *$", line)]


@pytest.mark.parametrize("smp", (1, 4))
def test_sleeps_are_exact(smp):
    """A sleep takes at most 20 us longer, for any span and by any call; CPU time is
    measured, not sampled."""
    result = vm("/test/exact", "--icount", "0", smp=smp)
    assert result.status == 0, result
    late = re.findall(r"^late (\S+) (\d+) (\d+)$", result.output, re.MULTILINE)
    assert len(late) == 25, result
    for kind, span, ns in late:
        assert int(ns) <= 20 * US, (kind, span, ns)


def test_an_idle_machine_takes_no_ticks():
    """In ten idle seconds a CPU wakes only for kload, every 5 s, this sleep, and the
    steps of a one-shot timer (at most 2.1 s): two until kload, four until the end, on
    one CPU or two; and once for the reader. Two CPUs check every 5 s whether the other
    one hangs, with two steps each."""
    result = vm("cat /proc/interrupts; sleep 10; cat /proc/interrupts",
                "--icount", "0", smp=4)
    before, after = timer_interrupts(result.output)
    counts = [b - a for a, b in zip(before, after)]
    assert len(counts) == 4, result
    watchers = 2 * 2 * (1 + 2)
    assert sum(counts) <= 2 * (1 + 2) + (1 + 4) + 1 + watchers, counts


@pytest.mark.parametrize("smp", (1, 4))
def test_a_lone_thread_takes_no_ticks(smp):
    """A thread that computes for three seconds has no ticks: no thread waits for its CPU,
    so slices are not timed. (kload may wait for it once.)"""
    result = vm("cat /proc/interrupts; /test/exact spin 3000000000; "
                "cat /proc/interrupts", "--icount", "0", smp=smp)
    before, after = timer_interrupts(result.output)
    assert sum(after) - sum(before) <= 5, (before, after)


def test_callouts_cost_the_same_at_any_number():
    result = vm(None, "--console", "--icount", "1", "--kargs",
                "test=callout_cost", smp=1)
    assert result.status == 0, result
    costs = {int(pending): [int(n) for n in numbers] for pending, *numbers in
             re.findall(r"callouts: (\d+) pending: set (\d+), stop (\d+), "
                        r"fire (\d+) instructions", result.output)}
    assert set(costs) == {10, 1000, 100000}, result
    for few, many in zip(costs[10], costs[100000]):
        assert many <= few * 1.1, costs
