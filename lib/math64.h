// 64-bit arithmetic in few instructions on a 32-bit machine.
#pragma once

#include "lib/types.h"
#ifdef __i386__
#include "arch/instructions.h"
#endif

// n / divisor, and the remainder: two 32-bit divisions, no library call.
// divisor > 0.
static inline u64 divide_u64(u64 n, u32 divisor, u32 *remainder)
{
#ifdef __i386__
    u32 high = (u32)(n >> 32);
    return (u64)(high / divisor) << 32 |
           divide_wide(high % divisor, (u32)n, divisor, remainder);
#else
    *remainder = (u32)(n % divisor);
    return n / divisor;
#endif
}

// a * b: the low half; *high gets the high one.
static inline u64 multiply_u64(u64 a, u64 b, u64 *high)
{
    u64 low = (u64)(u32)a * (u32)b;
    u64 middle = (a >> 32) * (u32)b + (low >> 32);
    u64 other = (u64)(u32)a * (b >> 32) + (u32)middle;
    *high = (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
    return other << 32 | (u32)low;
}

// floor(a * b / 2^shift), which must fit. shift < 128.
static inline u64 multiply_shift(u64 a, u64 b, u32 shift)
{
    u64 high, low = multiply_u64(a, b, &high);
    if (shift >= 64)
        return high >> (shift - 64);
    return shift ? high << (64 - shift) | low >> shift : low;
}

// floor(n * 2^64 / divisor); n < divisor. *exact: the remainder was 0.
u64 divide_fraction(u64 n, u64 divisor, bool *exact);
