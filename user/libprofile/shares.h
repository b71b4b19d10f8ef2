// Shares of time: what samples stand for, and how sure a share is.
//
// A tick that comes late has its sample stand for several. In whose time they
// were due is known, but not in which function: the more so where the machine
// itself had been stopped by its host. Each sample's own weight would be noise
// then: with half of the ticks late, shares wander three times as much. So the
// time of a thread (on one CPU, in one program, in one mode) is divided evenly
// among its samples. Not so in the kernel, where the source cannot interrupt
// all code: a late tick is the mark of a section with interrupts off, and its
// sample keeps what it stands for. Neither are counted events divided: so many
// there were.
#pragma once

#include "samples.h"

// Divides the periods of event `event`, of which `info` tells. The sums stay;
// may be repeated when there are more samples.
void shares_even(struct samples *s, uint32_t event,
                 const struct sprofile_info *info);

struct shares {
    uint64_t samples; // of the event, but for idle ones
    // Shares are as sure as by so many that stand for the same: the square of
    // the sum of weights by the sum of squares (L. Kish, Survey Sampling,
    // 1965).
    double effective;
};
struct shares shares_of(const struct samples *s, uint32_t event);
// Half of the interval, in points of a percentage, in which a share of
// `percent` lies with 95 % probability.
double shares_points(const struct shares *h, double percent);
