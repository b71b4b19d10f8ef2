"""What `make test-quick` runs besides the host tests, the tests in the kernel and
some of the other files: the guest programs on one CPU in virtual time, in which a
run repeats to the digit."""
import functools

import pytest

from machine import batch
from test_programs import PROGRAMS

VIRTUAL = ("--icount", "3")  # 8 ns an instruction


@functools.lru_cache(maxsize=None)
def results():
    return batch({name: f"/test/{name}" for name in PROGRAMS}, *VIRTUAL, smp=1)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    result = results()[program]
    assert result.status == 0, result
    assert "ok " in result.output and "FAILED" not in result.output, result
