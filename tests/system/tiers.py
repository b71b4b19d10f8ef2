"""The two tiers (docs/testing.md). Tests run in virtual time, on machines that repeat
exactly, unless marked `realtime`, with the chance of a false failure (if the host
stops QEMU for long)."""
import pytest


def realtime(chance=1e-4):
    return pytest.mark.realtime(chance=chance)


def side_by_side(smp, chance=1e-4):
    """A parameter: `smp` CPUs, which run concurrently only in real time. (Under
    -icount they take turns, and a busy one starves the others.)"""
    return pytest.param(smp, marks=realtime(chance))


# Tests of random draws in virtual time, which every change of the kernel redraws:
# `make test-draws` repeats them with other draws.
drawn = pytest.mark.drawn


# Parameters of a batch: one CPU in virtual time, and two in real time.
BOTH = (1, side_by_side(2))
