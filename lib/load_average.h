// Load averages over 1, 5 and 15 minutes, 16.16 fixed point:
//
//     new = old * C + runnable * (1 - C),   C = e^(-5 s / T)
//
// every 5 seconds, with the exact exponential instead of the approximation 1 -
// 5 s / T of S. Kozina, "HelenOS monitoring" (2010), section 4.4.2. Rounded to
// the nearest. Pure.
#pragma once

#include "types.h"

#define LOAD_AVERAGES 3
#define LOAD_PERIOD_SECONDS 5
#define LOAD_ONE 65536u // a load of 1

// The next value of average `which` (0: 1, 1: 5, 2: 15 minutes); `runnable`
// threads, fewer than 65,536.
u32 load_average(unsigned which, u32 old, u32 runnable);
