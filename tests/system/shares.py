"""Programs whose functions have known shares of the time: tester's loops, and
/test/shares on several CPUs in real time. Its functions alternate every few
milliseconds, so a change of the host's speed affects all of them alike, and a late
tick hits each by its share of the time."""
import math

from statistic import deviations

LOOPS = {"burn_a": 0.5, "burn_b": 0.25, "burn_c": 0.25}  # of tester
SHARES = (1, 2, 3, 4, 10)
PROGRAM = "/test/shares"
MARGIN = 0.02  # allows for a program's start and end, and the host


def samples(rows):
    """Samples of each function."""
    found = {row["symbol"]: row["samples"] for row in rows
             if row["image"] == PROGRAM}
    return [found.get(f"share_{share}", 0) for share in SHARES]


def by_chance(share, whole):
    """Largest chance error of a share of `whole` samples."""
    return deviations() * math.sqrt(share * (1 - share) / whole)


def are_right(found):
    whole = sum(found)
    shares = [share / sum(SHARES) for share in SHARES]
    return all(abs(n / whole - share) < by_chance(share, whole) + MARGIN
               for n, share in zip(found, shares))


def check_shares(rows):
    """The shares are right; and the check fails if a detectable part of the largest
    is moved to the smallest."""
    found = samples(rows)
    whole = sum(found)
    assert whole > 300, rows
    assert are_right(found), found
    moved = math.ceil((2 * by_chance(0.5, whole) + MARGIN) * whole)
    wrong = [found[0] + moved, *found[1:-1], found[-1] - moved]
    assert not are_right(wrong), (moved, found)
