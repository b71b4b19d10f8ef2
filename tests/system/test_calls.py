"""What the in-kernel tests of call tracing (tests/kernel/test_calls.c) measure: exact in
virtual time only."""
import re

from machine import ROOT, vm

TESTS = "calls_are_unwound_anywhere", "calls_times_are_without_tracing"


def test_stubs_in_virtual_time():
    """NMIs come to many places of the stubs, each of them is unwound, and none is a part
    of the call that the stub measures; a function's own time is what it takes without
    tracing."""
    result = vm(None, "--console", "--kernel", f"{ROOT}/build/kernel-test.elf",
                "--kargs", f"test={','.join(TESTS)}", "--icount", "1", smp=1)
    assert result.status == 0 and "# 2 passed, 0 failed" in result.output, result
    nmis, places = map(int, re.search(
        r"calls: (\d+) NMIs in stubs, at (\d+) places", result.output).groups())
    assert nmis > 100 and places > 40, result
    calls, longest, long_nmi = map(int, re.search(
        r"calls: the longest of (\d+) took (\d+) cycles, long NMIs (\d+) instr",
        result.output).groups())
    # An instruction takes 2 cycles.
    assert calls > 10_000 and 0 < longest < long_nmi, result
    plain, traced, outside = map(int, re.search(
        r"calls: (\d+) cycles, traced (\d+), outside \d+ and (\d+)",
        result.output).groups())
    # Without: the call, the return and two RDTSC more.
    assert 0 <= plain - (traced - outside) <= plain / 50, result
