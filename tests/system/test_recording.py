"""The cost of recording: CPU time of `profile -o` for another sample."""
import re

import pytest

from machine import PATIENCE, vm


@pytest.fixture(scope="module")
def costs():
    result = vm("bench sampling recording", "--icount", "1", smp=1,
                timeout=PATIENCE)
    assert result.status == 0, result
    return {name: int(cost) for name, cost in
            re.findall(r"^([a-z-]+) (\d+)$", result.output, re.MULTILINE)}


def test_with_stacks(costs):
    """A sample with a stack of 17 frames costs at most 3,000 instructions, with the
    interrupt and the kernel's part of writing it. (`perf record -g`: 7,179.)"""
    assert 1000 < costs["recorded-stack"], costs
    random = costs["sample-random"] - costs["sample-pc"]  # the default
    assert costs["recorded-stack"] + costs["sample-stack"] + random <= 3000, \
        costs


def test_without_stacks(costs):
    """A sample without a stack costs at most 1,500 instructions."""
    assert 300 < costs["recorded-pc"], costs
    assert costs["recorded-pc"] + costs["sample-random"] <= 1500, costs
