// Run-time functions that compilers call by these names (GCC Internals, "The
// GCC low-level runtime library"). Any context.
#pragma once

#include "lib/types.h"

u64 __udivdi3(u64 n, u64 divisor);
u64 __umoddi3(u64 n, u64 divisor);
u64 __udivmoddi4(u64 n, u64 divisor, u64 *remainder);
s64 __divdi3(s64 n, s64 divisor);
s64 __moddi3(s64 n, s64 divisor);
s64 __divmoddi4(s64 n, s64 divisor, s64 *remainder);
int __popcountsi2(u32 n);
