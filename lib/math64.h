// 64-bit arithmetic in few instructions on a 32-bit machine.
#pragma once

#include "lib/types.h"

// n / divisor, and the remainder: two 32-bit divisions instead of libgcc's
// general routine. divisor > 0.
static inline u64 divide_u64(u64 n, u32 divisor, u32 *remainder)
{
#ifdef __i386__
    u32 high = (u32)(n >> 32), quotient_high = high / divisor, quotient;
    __asm__("divl %4"
            : "=a"(quotient), "=d"(*remainder)
            : "a"((u32)n), "d"(high % divisor), "r"(divisor)
            : "cc");
    return (u64)quotient_high << 32 | quotient;
#else
    *remainder = (u32)(n % divisor);
    return n / divisor;
#endif
}
