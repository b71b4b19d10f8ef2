"""Statistical bounds from the number of draws. A right result exceeds one less often
than once in 10^9 runs of the suite, with any kernel; a test that uses a bound also
shows that it rejects a wrong result."""
import math
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tools"))

from chi_square import tail  # noqa: E402

# Each tick that was due is in one of these columns of a report.
TICKS = ("taken", "missed", "in_sampling", "throttled", "others")
FALSE_ALARM = 1e-11  # of one comparison; the suite makes some dozens


def deviations():
    """The two-sided bound in standard deviations."""
    return statistics.NormalDist().inv_cdf(1 - FALSE_ALARM / 2)


def chi_square_bound(degrees):
    low, high = 0, 1000
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if tail(degrees, middle) > FALSE_ALARM \
            else (low, middle)
    return high


def chi_square(found, shares):
    whole = sum(found) / sum(shares)
    return sum((n - share * whole) ** 2 / (share * whole)
               for n, share in zip(found, shares))
