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


def probability(n, k, share):
    """That of n samples k are in a function with this share."""
    return math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) +
                    k * math.log(share) + (n - k) * math.log1p(-share))


def chance(n, k, share):
    """The probability of such a difference, or a larger one: twice that of its side."""
    far = range(k, n + 1) if k > n * share else range(k + 1)
    return min(1, 2 * math.fsum(probability(n, i, share) for i in far))
