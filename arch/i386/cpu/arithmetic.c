// Compiler run-time functions for what i386 has no instruction for: 64-bit
// division and population count. libgcc's versions take their arguments from
// the stack, while the kernel's functions take them in registers (-mregparm=3).
//
// Pure arithmetic, any context. Division by 0 traps, as a 32-bit one does.

#include "arch/i386/cpu/arithmetic.h"
#include "lib/math64.h"

// H. S. Warren, Hacker's Delight, 9-5: shift the divisor until its highest bit
// is set; n / 2 divided by its high word then yields the quotient, or 1 more.
static ALWAYS_INLINE u64 divide(u64 n, u64 divisor, u64 *remainder)
{
    u32 high = (u32)(divisor >> 32), rest;
    if (likely(!high)) {
        u64 quotient = divide_u64(n, (u32)divisor, &rest);
        *remainder = rest;
        return quotient;
    }
    u32 shift = (u32)__builtin_clz(high);
    u64 quotient = divide_u64(n >> 1, (u32)(divisor << shift >> 32), &rest);
    quotient = quotient << shift >> 31;
    if (quotient)
        quotient--;
    *remainder = n - quotient * divisor;
    if (*remainder >= divisor) {
        *remainder -= divisor;
        quotient++;
    }
    return quotient;
}

u64 __udivmoddi4(u64 n, u64 divisor, u64 *remainder)
{
    u64 rest, quotient = divide(n, divisor, &rest);
    if (remainder)
        *remainder = rest;
    return quotient;
}

u64 __udivdi3(u64 n, u64 divisor)
{
    u64 rest;
    return divide(n, divisor, &rest);
}

u64 __umoddi3(u64 n, u64 divisor)
{
    u64 rest;
    divide(n, divisor, &rest);
    return rest;
}

static u64 magnitude(s64 n)
{
    return n < 0 ? 0 - (u64)n : (u64)n;
}

// Rounds towards 0: the remainder has the sign of n.
s64 __divmoddi4(s64 n, s64 divisor, s64 *remainder)
{
    u64 rest, quotient = divide(magnitude(n), magnitude(divisor), &rest);
    if (remainder)
        *remainder = (s64)(n < 0 ? 0 - rest : rest);
    return (s64)((n < 0) != (divisor < 0) ? 0 - quotient : quotient);
}

s64 __divdi3(s64 n, s64 divisor)
{
    return __divmoddi4(n, divisor, NULL);
}

s64 __moddi3(s64 n, s64 divisor)
{
    s64 rest;
    __divmoddi4(n, divisor, &rest);
    return rest;
}

// H. S. Warren, 5-1: sums within 2, 4 and 8 bits; the multiplication adds up
// the four bytes in the highest one.
int __popcountsi2(u32 n)
{
    n -= n >> 1 & 0x55555555;
    n = (n & 0x33333333) + (n >> 2 & 0x33333333);
    n = (n + (n >> 4)) & 0x0f0f0f0f;
    return (int)(n * 0x01010101 >> 24);
}
