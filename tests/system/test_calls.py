"""What the in-kernel tests of call tracing (tests/kernel/test_calls.c) measure: exact in
virtual time only."""
import re

from machine import ROOT, vm

TIMES = "calls_times_are_without_tracing"
TESTS = "calls_are_unwound_anywhere", "calls_are_recorded_anywhere", TIMES


def measured_times(output):
    """Of a function: cycles untraced, traced; a call's cost outside of both accounts."""
    return map(int, re.search(r"calls: (\d+) cycles, traced (\d+), outside (\d+) and (\d+)",
                              output).groups())


def test_stubs_in_virtual_time():
    """NMIs come to many places of the stubs, each of them is unwound, and none is a part
    of the call that the stub measures; a function's own time is what it takes without
    tracing."""
    result = vm(None, "--console", "--kernel", f"{ROOT}/build/kernel-test.elf",
                "--kargs", f"test={','.join(TESTS)}", "--icount", "1", smp=1)
    assert result.status == 0 and "# 3 passed, 0 failed" in result.output, result
    nmis, places = map(int, re.search(
        r"calls: (\d+) NMIs in stubs, at (\d+) places", result.output).groups())
    assert nmis > 100 and places > 40, result
    calls, longest, long_nmi = map(int, re.search(
        r"calls: the longest of (\d+) took (\d+) cycles, long NMIs (\d+) instr",
        result.output).groups())
    # Of the stub that only records calls, nearly all: a round on the way to a new page
    # is rare.
    nmis, places = map(int, re.search(
        r"lost; (\d+) NMIs in the stub, at (\d+) places", result.output).groups())
    assert nmis >= 200 and places >= 30, result
    # An instruction takes 2 cycles.
    assert calls > 10_000 and 0 < longest < long_nmi, result
    plain, traced, _, outside = measured_times(result.output)
    # Without: the call, the return and two RDTSC more.
    assert 0 <= plain - (traced - outside) <= plain / 50, result


def test_the_cost_outside_is_so_many_instructions():
    """However long an instruction takes, that of the call included."""
    costs = []
    for icount, cycles in (0, 1), (3, 8):
        result = vm(None, "--console", "--kernel", f"{ROOT}/build/kernel-test.elf",
                    "--kargs", f"test={TIMES}", "--icount", str(icount), smp=1)
        assert result.status == 0 and "# 1 passed, 0 failed" in result.output, result
        _, _, *outside = measured_times(result.output)
        costs.append([cost / cycles for cost in outside])
    assert costs[0] == costs[1] and all(cost > 10 for cost in costs[0]), costs
