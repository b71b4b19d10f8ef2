"""The two tiers (docs/testing.md). A test is in virtual time, on machines that
repeat to the digit, unless it is marked `realtime`, with how often luck (a host
that stops QEMU for long) fails it."""
import pytest


def realtime(chance=1e-4):
    return pytest.mark.realtime(chance=chance)


def side_by_side(smp, chance=1e-4):
    """A parameter: so many CPUs, which only real time has side by side. (Under
    -icount they take turns, and one that computes lets another starve.)"""
    return pytest.param(smp, marks=realtime(chance))


# Of what is left to chance in virtual time, which another kernel draws anew:
# `make test-draws` repeats these tests, each time with another draw.
drawn = pytest.mark.drawn


# For the fixture of a batch: its scripts on one CPU in virtual time, and on two.
BOTH = (1, side_by_side(2))
