"""The profiler's reported cost is the cost that a program observes: the added time of a
loop of known length. One instruction is one nanosecond and one TSC cycle."""
import json
import re

import pytest

from machine import batch, vm
from statistic import TICKS

MILLIONS = 200  # iterations of the loop, of two instructions
ICOUNT = ("--icount", "0")
# kernel/profile/throttle.h: seconds beside the quarter; more instructions than an
# interrupt takes without a throttled sample.
ONCE, LONGER_PATH = 0.01, 4


@pytest.fixture(scope="module")
def alone():
    return took(vm(f"/test/observed {MILLIONS}", *ICOUNT, smp=1))


def took(result):
    assert result.status == 0, result
    return int(re.search(r"^took (\d+)$", result.errors, re.MULTILINE)[1])


def report(result):
    return json.loads(result.output[result.output.index("{\n"):])


def ticks(r):
    return sum(r[column] for column in TICKS)


# Options with which the profiler sleeps while the loop runs.
@pytest.mark.parametrize("options", (
    "-s nmi-hpet", "-s nmi-hpet -g", "-s nmi-hpet --fixed", "-s nmi-pit",
    "-s lapic", "-s lapic -g", "-s rtc", "-s clock"))
def test_interrupts(options, alone):
    result = vm(f"profile -F 8000 -m 5 {options} --json "
                f"/test/observed {MILLIONS}", *ICOUNT, smp=1)
    more, r = took(result) - alone, report(result)
    within = ticks(r) * took(result) / r["elapsed_ns"]  # the loop
    assert r["throttled"] == 0 and ticks(r) > 300, r
    said = r["cycles"] / r["interrupts"]
    assert abs(said * within / more - 1) < 0.1, (said, more / within, r)


def test_a_counters_sample():
    """At most 500 instructions, on counters made of memory, in a kernel thread: without
    status bits, and with them and a gate (five more accesses), at fixed and at random
    distances."""
    result = vm(None, "--console", "--kargs", "test=pmc_cost", *ICOUNT, smp=1)
    assert result.status == 0, result
    costs = {(int(version), bool(random)): int(cost) for version, random, cost in
             re.findall(r"pmc: version (\d)(, random)?: a sample takes (\d+)",
                        result.output)}
    assert len(costs) == 4 and max(costs.values()) <= 500, costs


# The tool reads samples while the loop runs, with and without chains.
@pytest.mark.parametrize("options", ("-F 8000 -g -o /tmp/file",
                                     "-F 8000 -s lapic -o /tmp/file"))
def test_the_tool(options, alone):
    result = vm(f"profile {options} --json /test/observed {5 * MILLIONS}",
                *ICOUNT, smp=1)
    more, r = took(result) - 5 * alone, report(result)
    said = (r["cycles"] + r["tool_cycles"]) / r["elapsed_ns"]
    assert abs(said * took(result) / more - 1) < 0.1, (said, more, r)
    assert r["tool_cycles"] > 0, r


def test_two_sessions_share_the_interrupts():
    """The sum of two sessions' charges is the cost that the loop observes."""
    result = vm(f"""
        sprofile -F 8000 --for 30 --json >system & s=$!
        until sysinfo system.profile.sessions | grep -q taking; do
            sleep 0.01
        done
        profile -F 8000 -m 5 --json /test/observed {MILLIONS} >task
        kill -TERM $s; wait $s
        cat task system""", *ICOUNT, smp=1)
    assert result.status == 0, result
    text = result.output[result.output.index("{\n"):]
    task, end = json.JSONDecoder().raw_decode(text)
    system = json.loads(text[end:])
    cost = [r["cycles"] / r["interrupts"] for r in (task, system)]
    # The system's session was alone for some time, charged with all.
    shared = task["interrupts"]
    first = system["interrupts"] - shared
    assert shared > 3000 and first < 1000, (task, system)
    assert 130 < cost[0] < 220, (cost, task)
    alone = (system["cycles"] - task["cycles"]) / first
    assert 270 < alone < 700, (alone, task, system)


def test_throttle(alone):
    """Sampling is limited to a quarter of a CPU, plus the cost of interrupts that take
    no sample: at fixed distances, as the number of random ones varies. (Unlimited samples
    take 36 %, of which interrupt entry and exit are 11.
    An instruction is 32 cycles; the tool first reads after a second, after the loop.)"""
    profile = "profile -s nmi-hpet --fixed -g -F 20000 -m 4 --json"
    asleep = report(vm(f"{profile} sleep 1", "--icount", "5", smp=1))
    without = asleep["cycles"] / asleep["interrupts"]
    result = vm(f"{profile} /test/observed {MILLIONS // 25}", "--icount", "5", smp=1)
    loop, r = took(result), report(result)
    assert loop < 0.9e9, (loop, r)
    observed = 1 - alone / 25 * 32 / loop
    assert r["throttled"] > 1000, (observed, r)
    beyond = r["throttled"] * (without + LONGER_PATH * 32) / loop
    assert 0.2 < observed < 0.25 + ONCE / (loop / 1e9) + beyond, (observed, beyond, r)
    assert beyond < 0.1, beyond


@pytest.mark.parametrize("source", ("nmi-hpet", "lapic"))
def test_a_rate_that_the_machine_cannot_bear(source):
    """The machine goes on, slowly, if interrupts come faster than a CPU's accounts can be
    read."""
    result = vm(f"profile -s {source} -g -F 20000 -m 1 --json "
                "/test/observed 2", "--icount", "5", "--timeout", "60", smp=1)
    took(result)


def test_the_line_says_it():
    results = batch({
        "profile": "profile -F 8000 tester 20 | grep ^Cost",
        "sprofile": "sprofile -F 8000 tester 20 | grep ^Cost",
    }, *ICOUNT, smp=1)
    for name in ("profile", "sprofile"):
        assert re.fullmatch(
            r"Cost:    \d+ cycles a sample, [\d.]+ % of the CPU in interrupts; "
            r"[\d.]+ % the tool itself\n", results[name].output), results[name]
