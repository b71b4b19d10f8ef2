// Shares of time: how much time samples represent, and the precision of a
// share.
//
// The sample of a late tick represents several ticks. Their thread is known,
// but their function is not, in particular when the host had stopped the
// virtual machine. The weights of single samples would then be noise: with half
// of the ticks late, shares vary three times as much. Therefore the time of a
// thread (on one CPU, in one program, in one mode) is divided evenly among its
// samples. There are two exceptions. In the kernel, if the source cannot
// interrupt all code, a late tick indicates a section with interrupts disabled,
// and its sample keeps its weight. The periods of counted events are exact, and
// are not divided; nor are those of a session that was throttled, as they tell
// how often the code of such a sample was throttled.
//
// These periods are the weights in all reports, pages and exports.
#pragma once

#include "perf_read.h"

// Where the interrupts of a source cannot interrupt code that has interrupts
// off. (nmi-ipi is sent by an ordinary interrupt of the boot CPU. The code at
// trace points has them off or on.)
enum source_masked {
    MASKED_NOWHERE, // NMIs
    MASKED_BOOT_CPU,
    MASKED_EVERYWHERE,
    MASKED_UNKNOWN,
};
enum source_masked source_masked(const char *source);

// Divides the periods of event `event`, which `info` describes. The sums do not
// change, nor the sums of squares: although functions get even shares, the
// ticks that a sample stands for are one observation. May be repeated when more
// samples were added.
void shares_even(struct samples *s, uint32_t event,
                 const struct sprofile_info *info);

// Divides the periods of the counts, after shares_even, among the samples in
// `list` of that event, where they were divided. Returns -1 when out of memory.
int shares_divide(const struct samples *s, uint32_t event,
                  const struct sprofile_info *info, struct timed_sample *list,
                  size_t count);

struct shares {
    uint64_t samples; // of the event, except idle samples
    // The effective sample size: the number of equally weighted samples with
    // the same precision. It is the squared sum of the weights divided by the
    // sum of their squares (L. Kish, Survey Sampling, 1965).
    double effective;
};
struct shares shares_of(const struct samples *s, uint32_t event);
// Most timers interrupt all CPUs at the same moments. Returns on how many CPUs
// samples of one moment are: those that have samples, unless a single thread
// has all of them. Where these CPUs do the same, the samples of a moment are as
// good as one.
uint32_t shares_together(const struct samples *s, uint32_t event,
                         const struct sprofile_info *info);
// The number of independent samples, idle ones included, that are at least as
// precise.
double shares_independent(const struct samples *s, uint32_t event,
                          const struct sprofile_info *info);
// Returns half the width, in percentage points, of the 95 % confidence interval
// of a share of `percent`.
double shares_points(const struct shares *h, double percent);
