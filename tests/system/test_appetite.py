"""Many areas of an address space, gaps between them or file locks of one task cost other
tasks nothing and itself little. In virtual time, so exact."""
import pytest

from machine import vm

# Number of objects, and the allowed cost of an operation relative to 100 objects: a
# tree of 60,000 is 2.4 times as high as one of 100; locks of other tasks are not visited.
KINDS = {"areas": (60000, 1.1), "gaps": (60000, 1.7), "locks": (10000, 1.02)}


@pytest.mark.parametrize("kind", KINDS)
def test_appetite(kind):
    many, times = KINDS[kind]
    result = vm(f"/test/appetite {kind} 100; /test/appetite {kind} {many}")
    assert result.status == 0, result
    few_cost, many_cost = map(int, result.output.split())
    assert many_cost < few_cost * times, result
