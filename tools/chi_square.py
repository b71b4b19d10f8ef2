"""The chi-square distribution, for tools/truth and the tests."""
import math

TERMS_MAX = 100_000


def tail(degrees, value):
    """P(chi-square > value): the regularized upper incomplete gamma function of
    degrees / 2 and value / 2."""
    a, x = degrees / 2, value / 2
    if x <= 0:
        return 1.0
    if math.isinf(x):
        return 0.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    return 1 - front * lower_series(a, x) if x < a + 1 else front * upper_fraction(a, x)


def lower_series(a, x):
    """sum of x^n / (a (a + 1) ... (a + n))"""
    term = total = 1 / a
    for n in range(1, TERMS_MAX):
        term *= x / (a + n)
        total += term
        if term < total * 1e-16:
            break
    return total


def upper_fraction(a, x):
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...)), by Lentz's method."""
    tiny = 1e-300
    b = x + 1 - a
    c, d = 1 / tiny, 1 / (b or tiny)
    value = d
    for n in range(1, TERMS_MAX):
        factor = -n * (n - a)
        b += 2
        d = 1 / (factor * d + b or tiny)
        c = b + factor / c or tiny
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def likelihood_ratio(found, expected):
    """Wilks's statistic of counts against expected counts with the same sum. It has a
    chi-square distribution, as Pearson's has; but where few are expected its tail is
    right, and Pearson's is not."""
    return 2 * sum(n * math.log(n / e) if e else math.inf
                   for n, e in zip(found, expected) if n)
