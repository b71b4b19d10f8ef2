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
// A reader takes `gen`, the timehands, the counter, and `gen` again: if it is
// still the same, and was not busy, what it took belongs together.
#pragma once

#include "lib/types.h"

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
    u32 gen;
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
    const struct time_line *line = &th->lines[clock];
    __asm__("" : "+r"(line));
    return line;
}

static ALWAYS_INLINE u64 rdtsc_ordered(void)
{
    u64 t;
    // Loads before it are done before it (SDM vol. 2, RDTSC).
    __asm__ volatile("lfence; rdtsc" : "=A"(t)::"memory");
    return t;
}

// Nanoseconds since the line began, by the TSC: edx:eax. Jumps to `kernel` with
// so many counts (2^32 and more), or so few (the TSC is behind), that only the
// kernel knows what to do.
//
// In assembly because it is the kernel's most frequent question; what a change
// of the timehands meanwhile makes of it is thrown away by the caller.
#define TIME_SINCE                         \
    "lfence\n\t"                           \
    "rdtsc\n\t"                            \
    "subl %c[count](%[line]), %%eax\n\t"   \
    "sbbl %c[count]+4(%[line]), %%edx\n\t" \
    "jnz %l[kernel]\n\t"                   \
    "movl %c[shift](%[line]), %%ecx\n\t"   \
    "mull %c[multiplier](%[line])\n\t"     \
    "shrdl %%cl, %%edx, %%eax\n\t"         \
    "shrl %%cl, %%edx"
#define TIME_LINE(member) [member] "i"(offsetof(struct time_line, member))

static ALWAYS_INLINE bool time_since(const struct time_line *line, u64 *ns)
{
    u64 result = 0; // for those who do not see that the assembly sets it
    __asm__ goto volatile(TIME_SINCE
                          : "=&A"(result)
                          : [line] "r"(line), TIME_LINE(count),
                            TIME_LINE(multiplier), TIME_LINE(shift)
                          : "ecx", "cc", "memory"
                          : kernel);
    *ns = result;
    return true;
kernel:
    return false;
}

// The clock's nanoseconds, those of whole seconds since the line began
// included. False also when they do not fit. (A
// TSC's line has a shift of 26 to 31, so the flags are the last shift's.)
static ALWAYS_INLINE bool time_nsec(const struct time_line *line, u32 *nsec)
{
    u32 result = 0; // for those who do not see that the assembly sets it
    __asm__ goto volatile(TIME_SINCE "\n\t"
                                     "jnz %l[kernel]\n\t"
                                     "addl %c[nsec](%[line]), %%eax\n\t"
                                     "jc %l[kernel]"
                          : "=&a"(result)
                          : [line] "r"(line), TIME_LINE(count), TIME_LINE(nsec),
                            TIME_LINE(multiplier), TIME_LINE(shift)
                          : "ecx", "edx", "cc", "memory"
                          : kernel);
    *nsec = result;
    return true;
kernel:
    return false;
}
