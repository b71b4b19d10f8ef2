"""What programs of known shares look like to a profiler: tester's loops, and
/test/shares as it is seen on several CPUs in real time. Its functions
take turns every few milliseconds, so a host that is fast now and slow then is so
for all of them; and a late tick hits any, as each has its share of the time."""
import math

from statistic import deviations

LOOPS = {"burn_a": 0.5, "burn_b": 0.25, "burn_c": 0.25}  # of tester
SHARES = (1, 2, 3, 4, 10)
PROGRAM = "/test/shares"
MARGIN = 0.02  # for a program's start and end, and the host


def samples(rows):
    """Of each function."""
    found = {row["symbol"]: row["samples"] for row in rows
             if row["image"] == PROGRAM}
    return [found.get(f"share_{share}", 0) for share in SHARES]


def by_chance(share, whole):
    """How far this share of so many samples may be off."""
    return deviations() * math.sqrt(share * (1 - share) / whole)


def are_right(found):
    whole = sum(found)
    shares = [share / sum(SHARES) for share in SHARES]
    return all(abs(n / whole - share) < by_chance(share, whole) + MARGIN
               for n, share in zip(found, shares))


def check_shares(rows):
    """They are right; and would not be if the largest had given the smallest
    the least that is surely seen."""
    found = samples(rows)
    whole = sum(found)
    assert whole > 300, rows
    assert are_right(found), found
    moved = math.ceil((2 * by_chance(0.5, whole) + MARGIN) * whole)
    wrong = [found[0] + moved, *found[1:-1], found[-1] - moved]
    assert not are_right(wrong), (moved, found)
