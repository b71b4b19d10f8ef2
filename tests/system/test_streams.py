"""Streams: data is read in time, and an end is noticed at once."""
import re

import pytest

from machine import batch

SOURCES = ("lapic", "nmi-pit", "nmi-hpet")
LOOP = """lua -e 'local t = {} for i = 1, 3e5 do t[i % 1000] = tostring(i) end'"""
RING = 256 << 10 # the kernel's default
AT_ONCE = 0.05
CLOCK = ("--icount", "0") # 1 ns an instruction
# Only the tools take time here.
SHORT = {
    "the system": "sprofile true",
    "the system, recorded": "sprofile -g -o file true",
    "a program": "profile true",
    "a program, two sources": "profile -s lapic,clock true",
    "a task that ends": "sleep 0.03 & profile -t $!",
}


def test_nothing_is_lost_at_20_khz():
    """No sample is lost at 20 kHz: with call chains a ring fills within a sixth of the
    100 ms between the periodic reads."""
    results = batch({name: f"profile -g -F 20000 -s {name} -o file {LOOP} "
                     "2>&1 && wc -c <file" for name in SOURCES},
                    *CLOCK, smp=1)
    assert results.pop(None).status == 0
    for result in results.values():
        taken, lost = map(int, re.search(
            r"(\d+) taken, (\d+) lost", result.output).groups())
        assert lost == 0, result
        assert taken > 15000, result
        assert int(result.output.split()[-1]) > 4 * RING, result


@pytest.mark.parametrize("smp", (1, 2, 4))
def test_an_end_is_heard_at_once(smp):
    results = batch({name: f"time -p sh -c '{script} >/dev/null'"
                     for name, script in SHORT.items()}, *CLOCK, smp=smp)
    assert results.pop(None).status == 0
    for result in results.values():
        assert result.status == 0, result
        real = re.search(r"^real (\S+)$", result.errors, re.MULTILINE)
        assert float(real[1]) < AT_ONCE, result
