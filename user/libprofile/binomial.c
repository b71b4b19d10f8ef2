#include "binomial.h"

#include <math.h>

#define NORMAL_95 1.959964 // standard deviations: 95 % of a normal distribution
#define TERM_LEAST 1e-17   // of a sum: it changes no digit

// The probability that `k` or more succeed; k is above the mean, so that the
// terms become smaller.
static double chance_of_more(double n, double k, double share)
{
    double odds = share / (1 - share), sum = 0;
    double term = exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) +
                      k * log(share) + (n - k) * log1p(-share));

    for (; k <= n && term > sum * TERM_LEAST; k++) {
        sum += term;
        term *= (n - k) / (k + 1) * odds;
    }
    return sum;
}

double binomial_chance(double n, double k, double share)
{
    double chance;

    if (k == n * share)
        return 1;
    if (share <= 0 || share >= 1)
        return 0;
    if (k > n * share)
        chance = chance_of_more(n, k, share);
    else
        chance = chance_of_more(n, n - k, 1 - share);
    return fmin(2 * chance, 1);
}

struct interval binomial_interval(double n, double share)
{
    double z2 = NORMAL_95 * NORMAL_95, sum = n + z2;
    double middle = (n * share + z2 / 2) / sum;
    double half = sqrt(z2 * (n * share * (1 - share) + z2 / 4)) / sum;

    return (struct interval){ middle - half, middle + half };
}
