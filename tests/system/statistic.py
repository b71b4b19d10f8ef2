"""Bounds for what is drawn by chance, from the number of draws. A right answer is
beyond one less often than once in 10^9 runs of the suite, whatever kernel drew it;
a test that uses one also shows that a wrong answer is refused."""
import math
import statistics

FALSE_ALARM = 1e-11  # of one comparison, of which the suite makes some dozens


def deviations():
    """So many standard deviations, to both sides."""
    return statistics.NormalDist().inv_cdf(1 - FALSE_ALARM / 2)


def tail(degrees, value):
    """How often chi-square of an even number of degrees of freedom is larger."""
    half = value / 2
    return math.exp(-half) * sum(half ** k / math.factorial(k)
                                 for k in range(degrees // 2))


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
