// Adjusting the clock without setting it: adjtime, and the phase-locked loop
// that NTP daemons steer (RFC 5905, section 12, as Linux's adjtimex(2) offers
// it).
//
// All but ADJUST_SETOFFSET changes the rate of CLOCK_MONOTONIC and with it that
// of CLOCK_REALTIME; CLOCK_MONOTONIC_RAW is not affected. No callout is set
// while no correction is left.
#pragma once

#include "lib/types.h"

// Requests: the ADJ_ bits of <sys/timex.h>.
#define ADJUST_OFFSET 0x0001u
#define ADJUST_FREQUENCY 0x0002u
#define ADJUST_MAXERROR 0x0004u
#define ADJUST_ESTERROR 0x0008u
#define ADJUST_STATUS 0x0010u
#define ADJUST_TIMECONST 0x0020u
#define ADJUST_TAI 0x0080u
#define ADJUST_SETOFFSET 0x0100u
#define ADJUST_MICRO 0x1000u
#define ADJUST_NANO 0x2000u
#define ADJUST_TICK 0x4000u
#define ADJUST_SINGLESHOT 0x8000u // with OFFSET: adjtime
#define ADJUST_SS_READ 0x2000u    // with both: only reads what is left

// The states that clock_adjust returns.
#define TIME_OK 0
#define TIME_ERROR 5

// struct timex of the 64-bit calls; the 32-bit calls convert it.
struct timex {
    u32 modes, pad1;
    s64 offset;   // microseconds, with STA_NANO nanoseconds
    s64 freq;     // 2^-16 ppm
    s64 maxerror; // microseconds
    s64 esterror; // microseconds
    s32 status, pad2;
    s64 constant;  // of the loop: 2^constant
    s64 precision; // microseconds
    s64 tolerance; // 2^-16 ppm
    s64 sec, usec; // CLOCK_REALTIME (usec: nanoseconds with STA_NANO)
    s64 tick;      // microseconds of CLOCK_REALTIME in 10 ms of the counter
    s64 pps[2];
    s32 shift, pad3;
    s64 pps_more[5];
    s32 tai; // TAI - UTC, seconds
    s32 pad4[11];
};

// Applies t->modes (the caller has checked permissions) and fills in the rest.
// TIME_OK, TIME_ERROR, or -EINVAL. Thread context.
int clock_adjust(struct timex *t);
// Called when the clock has been set: discards corrections that are left.
void clock_adjust_reset(void);
