"""What one task has much of costs others nothing, and itself little: areas of an
address space, gaps between them, file locks. In virtual time, so exact."""
import pytest

from machine import vm

# How many, and how many times as dear as with 100 an operation may be: a tree of
# 60,000 is 2.4 times as high as one of 100; what others lock is not looked at.
KINDS = {"areas": (60000, 1.1), "gaps": (60000, 1.7), "locks": (10000, 1.02)}


@pytest.mark.parametrize("kind", KINDS)
def test_appetite(kind):
    many, times = KINDS[kind]
    result = vm(f"/test/appetite {kind} 100; /test/appetite {kind} {many}")
    assert result.status == 0, result
    few_cost, many_cost = map(int, result.output.split())
    assert many_cost < few_cost * times, result
