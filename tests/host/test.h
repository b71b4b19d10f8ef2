// Shared by all host tests: cmocka and repeatable random numbers.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "lib/types.h"

static u64 random_state;

// SEED=N in the environment repeats a run.
static inline void random_init(void)
{
    const char *seed = getenv("SEED");
    random_state = seed != NULL ? strtoull(seed, NULL, 10) : (u64)time(NULL);
    printf("# SEED=%llu\n", (unsigned long long)random_state);
}

// splitmix64 (Steele, Lea, Flood 2014).
static inline u64 random_u64(void)
{
    u64 z = random_state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static inline u32 random_below(u32 n)
{
    return random_u64() % n;
}
