"""Out of memory: the task that is killed, and the report."""
import re

import pytest

from machine import vm
from tiers import side_by_side


@pytest.mark.parametrize("smp", (1, side_by_side(2)))
def test_the_largest_ends(smp):
    result = vm("/test/oom; echo status $?; dmesg", "--mem", "64", smp=smp)
    assert "status 0\n" in result.output, result
    assert "FAILED" not in result.output + result.errors, result
    kills = re.findall(r"out of memory: task (\d+) \((\w+)\) killed; it had the"
                       r" most, (\d+) KiB, of user 0; task (\d+) \((\w+)\) wanted more",
                       result.output)
    assert len(kills) == 4, result
    for victim, name, size, asker, asks in kills:
        assert name == asks == "oom" and victim != asker, result
        assert int(size) > 16000, result
    assert "does not end" not in result.output, result


def test_the_one_that_asks_may_be_the_largest():
    result = vm("lua -e 'local t = {} for i = 1, 1e9 do t[i] = i end'"
                "; echo status $?; dmesg", "--mem", "32")
    assert "status 137\n" in result.output, result
    assert re.search(r"task (\d+) \(lua\) killed; .*; task \1 \(lua\) wanted"
                     " more", result.output), result
