// The time page: written by the kernel (timehands.c), read by the kernel and,
// through a read-only mapping, by every program's vDSO (arch/i386/vdso).
//
// A sequence counter with two copies of the data: `gen` selects the current
// timehands, and says whether they may be used:
//
//     bit 0      TIME_BUSY: the kernel is about to switch timehands. No
//                reader reads the counter now, so that no time reported is
//                beyond the moment at which the new timehands take over
//     bit 1      TIME_DISTURBED: an NMI has read the counter all the same,
//                so the change is repeated
//     bits 2-6   while busy, the CPU that makes the change
//     bit 7      TIME_KERNEL: the counter is not the TSC behind an LFENCE,
//                which user mode can read, too
//     bits 9-31  the generation, which each change increments; bit 9 is the
//                index
//
// It is read like a sequence counter (lib/seqcount.h): a reader reads `gen`,
// the timehands, the counter, and `gen` again. If `gen` is the same and was not
// busy, the values are consistent.
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

// The clock numbers of the system calls. The page has all clocks but the CPU
// times.
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
    u64 count; // the counter at that moment
    u64 sec;   // the clock at that moment
    u32 nsec;
    u32 multiplier; // counts * multiplier >> shift is nanoseconds
    u32 shift;      // < 32
    u32 pad;
};
// Added to `count` of the clocks that the page does not have: no counter is
// near that value, so the reader makes a system call.
#define TIME_INVALID (1ull << 63)

struct timehands {
    struct time_line lines[TIME_CLOCKS];
    // For the kernel: the whole time at `count` in nanoseconds.
    u64 uptime, raw;
    s64 wall_offset; // CLOCK_REALTIME - CLOCK_MONOTONIC
    u32 resolution;  // nanoseconds per count, rounded up
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

// The line of a clock. OPAQUE hides how the pointer is computed, so that the
// compiler keeps one register for it.
static ALWAYS_INLINE const struct time_line *
time_line(const struct timehands *th, u32 clock)
{
    return OPAQUE(&th->lines[clock]);
}

// Nanoseconds since the line began, by the TSC. False: only the kernel can
// compute them.
static ALWAYS_INLINE bool time_since(const struct time_line *line, u64 *ns)
{
    return tsc_line_ns(&line->count, &line->multiplier, &line->shift, ns);
}

// The clock's nanoseconds, including whole seconds since the line began. False
// also if they do not fit.
static ALWAYS_INLINE bool time_nsec(const struct time_line *line, u32 *nsec)
{
    return tsc_line_ns_from(&line->count, &line->multiplier, &line->shift,
                            &line->nsec, nsec);
}
