// A window in which a counter of known rate measures the TSC, other counters
// and the LAPIC timer. Start-up, boot CPU, interrupts off.
#pragma once

#include "arch/i386/clock/calibration_vote.h"
#include "kernel/time/timecounter.h"

#define CALIBRATION_GOAL_PPM 20u // a window as precise as this is not repeated
#define CALIBRATION_UNKNOWN_PPM 1000000u

struct moment {
    u64 value; // what the counter read
    u64 tsc;   // when: the middle of the interval
    u64 width; // of the interval
};

struct window {
    struct moment reference[2], lapic[2]; // start, end
    struct moment others[VOTERS_MAX][2];
    bool may_wrap;   // the reference, within a second; only then are known:
    u64 last, usual; // TSC at the last read; shortest time between two
    u64 standstill;  // sum of the times that were much longer
    u64 tsc_hz;      // result: the TSC's rate by the reference
    u32 error_ppm;   // upper bound of its error, or UNKNOWN
};

// The LAPIC timer, which counts down to 0; NULL: there is none.
struct down_counter {
    void (*start)(u32 count);
    u32 (*count)(void);
};
extern const struct down_counter *calibration_lapic;

// Measures the TSC by `voters[0]`, and reads the others (`count` in all) at
// both ends. False: voters[0] does not count.
bool calibration_measure(struct timecounter *const *voters, u32 count,
                         struct window *w);
// The rate of the TSC by voter `i` in this window. 0 Hz: it may have wrapped.
struct vote calibration_vote_of(const struct window *w,
                                struct timecounter *const *voters, u32 i);
// The LAPIC timer's rate, by its ratio to a TSC of `tsc_hz`; 0: it did not
// count, or counted down to 0.
u32 calibration_lapic_hz(const struct window *w, u64 tsc_hz);
// Measures the LAPIC timer by the TSC alone, in about `cycles`.
void calibration_measure_lapic(struct window *w, u64 cycles);
