// Reading a clock's line (offset, multiplier and shift; see
// kernel/time/time_page.h) at the current TSC. For the kernel and the vDSO.
//
// In assembly, since clocks are read more often than any other call is made: in
// C clock_gettime takes 241 instructions instead of 225, by the vDSO 67 instead
// of 51.
#pragma once

#include "lib/types.h"

static ALWAYS_INLINE u64 rdtsc_ordered(void)
{
    u64 t;
    // LFENCE: earlier loads complete before RDTSC (SDM vol. 2, RDTSC).
    __asm__ volatile("lfence; rdtsc" : "=A"(t)::"memory");
    return t;
}

// edx:eax = (TSC - *count) * *multiplier >> *shift. Jumps to `far` if the
// difference is 2^32 or more, or negative (the TSC is behind): the kernel
// handles these cases. The line may be changed while it is read: the caller
// then discards the result.
#define LINE_SINCE                  \
    "lfence\n\t"                    \
    "rdtsc\n\t"                     \
    "subl %[count_low], %%eax\n\t"  \
    "sbbl %[count_high], %%edx\n\t" \
    "jnz %l[far]\n\t"               \
    "movl %[shift], %%ecx\n\t"      \
    "mull %[multiplier]\n\t"        \
    "shrdl %%cl, %%edx, %%eax\n\t"  \
    "shrl %%cl, %%edx"
#define LINE_READ                                  \
    [count_low] "m"(((const u32 *)count)[0]),      \
        [count_high] "m"(((const u32 *)count)[1]), \
        [multiplier] "m"(*multiplier), [shift] "m"(*shift)

static ALWAYS_INLINE bool tsc_line_ns(const u64 *count, const u32 *multiplier,
                                      const u32 *shift, u64 *ns)
{
    u64 result = 0; // for compilers that do not see that the assembly sets it
    __asm__ goto volatile(LINE_SINCE
                          : "=&A"(result)
                          : LINE_READ
                          : "ecx", "cc", "memory"
                          : far);
    *ns = result;
    return true;
far:
    return false;
}

// The same plus `base`; false also if the result is 2^32 or more. (A TSC line's
// shift is 26 to 31, so the flags are those of the last shift.)
static ALWAYS_INLINE bool tsc_line_ns_from(const u64 *count,
                                           const u32 *multiplier,
                                           const u32 *shift, const u32 *base,
                                           u32 *ns)
{
    u32 result = 0; // for compilers that do not see that the assembly sets it
    __asm__ goto volatile(LINE_SINCE "\n\t"
                                     "jnz %l[far]\n\t"
                                     "addl %[base], %%eax\n\t"
                                     "jc %l[far]"
                          : "=&a"(result)
                          : LINE_READ, [base] "m"(*base)
                          : "ecx", "edx", "cc", "memory"
                          : far);
    *ns = result;
    return true;
far:
    return false;
}

#undef LINE_SINCE
#undef LINE_READ
