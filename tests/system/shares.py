"""What programs of known shares look like to a profiler: tester's loops, and
/test/shares as it is seen on several CPUs in real time. Its functions
take turns every few milliseconds, so a host that is fast now and slow then is so
for all of them; and a late tick hits any, as each has its share of the time."""
import math

LOOPS = {"burn_a": 0.5, "burn_b": 0.25, "burn_c": 0.25}  # of tester
SHARES = (1, 2, 3, 4, 10)
PROGRAM = "/test/shares"
SIGMAS = 6  # beyond them: once in 10^8 runs
MARGIN = 0.02  # for a program's start and end, and the host


def samples(rows):
    """Of each function."""
    found = {row["symbol"]: row["samples"] for row in rows
             if row["image"] == PROGRAM}
    return [found.get(f"share_{share}", 0) for share in SHARES]


def check_shares(rows):
    found = samples(rows)
    whole = sum(found)
    assert whole > 300, rows
    for n, share in zip(found, SHARES):
        share /= sum(SHARES)
        sigma = math.sqrt(share * (1 - share) / whole)
        assert abs(n / whole - share) < SIGMAS * sigma + MARGIN, found
