// Shares of a number of draws: their chance and their interval.
#pragma once

// Returns the probability that, of `n` draws which succeed with the chance
// `share` each, a number succeeds that differs from the mean as much as `k`, or
// more: twice that of one side, from the binomial distribution itself. `n` and
// `k` need not be whole.
double binomial_chance(double n, double k, double share);

// Returns the 95 % confidence interval of a share of which `n` draws have
// `share` (Wilson's): the shares from which that differs by 1.96 of their
// standard deviations.
struct interval {
    double low, high; // 0...1
};
struct interval binomial_interval(double n, double share);
