// The page that tells the time: written by the kernel (timehands.c), read by it
// and, through a read-only mapping, by every program's vDSO (arch/i386/vdso).
//
// Two timehands; `gen` says which one is in force and whether it may be used:
//
//     bit 0      TIME_BUSY: the kernel is about to put the other one in force.
//                Nobody reads the counter now, so that nobody's time is beyond
//                the moment at which the new one takes over
//     bit 1      TIME_DISTURBED: an NMI has done it all the same
//     bits 2-6   while busy, the CPU that is at it
//     bit 7      TIME_KERNEL: the counter is not the TSC behind an LFENCE,
//                which anybody can read
//     bits 9-31  a number that each change adds one to; bit 9 is the index
//
// So it is a sequence counter of which not only bit 0 is told, and read like
// one (lib/seqcount.h): a reader takes `gen`, the timehands, the counter, and
// `gen` again: if it is still the same, and was not busy, what it took belongs
// together.
#pragma once

#include "arch/time_line.h"
#include "lib/seqcount.h"

#define TIME_BUSY 0x01u
#define TIME_DISTURBED 0x02u
#define TIME_CPU_SHIFT 2
#define TIME_CPU_MASK 0x1fu
#define TIME_KERNEL 0x80u
#define TIME_INDEX 0x200u
#define TIME_GEN_SHIFT 9

// The clock numbers of the system calls. The page tells all but the CPU times.
enum {
    CLOCK_REALTIME,
    CLOCK_MONOTONIC,
    CLOCK_PROCESS_CPUTIME_ID,
    CLOCK_THREAD_CPUTIME_ID,
    CLOCK_MONOTONIC_RAW,
    CLOCK_REALTIME_COARSE,
    CLOCK_MONOTONIC_COARSE,
    CLOCK_BOOTTIME,
    TIME_CLOCKS
};

// A clock's line: the time at one moment, and the slope.
struct time_line {
    u64 count; // the counter's at that moment
    u64 sec;   // the clock's then
    u32 nsec;
    u32 multiplier; // counts * multiplier >> shift is nanoseconds
    u32 shift;      // < 32
    u32 pad;
};
// Added to `count`: no counter is near that, so the kernel is asked.
#define TIME_UNTOLD (1ull << 63)

struct timehands {
    struct time_line lines[TIME_CLOCKS];
    // For the kernel: the whole time then in nanoseconds.
    u64 uptime, raw;
    s64 wall_offset; // CLOCK_REALTIME - CLOCK_MONOTONIC
    u32 resolution;  // nanoseconds a count, rounded up
} __attribute__((aligned(TIME_INDEX)));

struct time_page {
    struct seqcount gen;
    struct timehands hands[2];
} __attribute__((aligned(4096)));

static ALWAYS_INLINE const struct timehands *
time_hands(const struct time_page *page, u32 gen)
{
    return (const void *)((const char *)page->hands + (gen & TIME_INDEX));
}

// The line of a clock. What it is computed from is forgotten, so that the
// compiler keeps one register for it.
static ALWAYS_INLINE const struct time_line *
time_line(const struct timehands *th, u32 clock)
{
    return OPAQUE(&th->lines[clock]);
}

// Nanoseconds since the line began, by the TSC. False: only the kernel can say.
static ALWAYS_INLINE bool time_since(const struct time_line *line, u64 *ns)
{
    return tsc_line_ns(&line->count, &line->multiplier, &line->shift, ns);
}

// The clock's nanoseconds, those of whole seconds since the line began
// included. False also when they do not fit.
static ALWAYS_INLINE bool time_nsec(const struct time_line *line, u32 *nsec)
{
    return tsc_line_ns_from(&line->count, &line->multiplier, &line->shift,
                            &line->nsec, nsec);
}
