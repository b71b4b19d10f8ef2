// What a clock's line says of now, by the TSC (kernel/time/time_page.h). For
// the kernel and for the vDSO.
//
// In assembly because it is the kernel's most frequent question: in C
// clock_gettime is 241 instructions for 225, by the vDSO 67 for 51.
#pragma once

#include "lib/types.h"

static ALWAYS_INLINE u64 rdtsc_ordered(void)
{
    u64 t;
    // Loads before it are done before it (SDM vol. 2, RDTSC).
    __asm__ volatile("lfence; rdtsc" : "=A"(t)::"memory");
    return t;
}

// (TSC - *count) * *multiplier >> *shift: edx:eax. Jumps to `far` with so many
// counts (2^32 and more), or so few (the TSC is behind), that only the kernel
// knows what to do. What is read may be changed meanwhile: the caller throws
// away then what comes of it.
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
    u64 result = 0; // for those who do not see that the assembly sets it
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

// The same and `base` more; false also when it is not below 2^32. (A TSC's line
// has a shift of 26 to 31, so the flags are the last shift's.)
static ALWAYS_INLINE bool tsc_line_ns_from(const u64 *count,
                                           const u32 *multiplier,
                                           const u32 *shift, const u32 *base,
                                           u32 *ns)
{
    u32 result = 0; // for those who do not see that the assembly sets it
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
