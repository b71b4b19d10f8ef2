// What a harness of libFuzzer has: one function, which is called with bytes
// that nobody has checked. It aborts when a promise is broken; AddressSanitizer
// and UBSan see the rest. `make fuzz-host` looks for new inputs, `make test`
// replays the corpus (replay.c).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/types.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define REQUIRE(condition)                                             \
    do {                                                               \
        if (!(condition)) {                                            \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, \
                    #condition);                                       \
            abort();                                                   \
        }                                                              \
    } while (0)

// The bytes as memory of just that size, so that the first one too far is seen.
// To be freed.
static inline void *guarded(const void *data, size_t size)
{
    u8 *copy = malloc(size + !size);
    REQUIRE(copy);
    for (size_t i = 0; i < size; i++)
        copy[i] = ((const u8 *)data)[i];
    return copy;
}

// Takes bytes from the front of an input.
struct input {
    const u8 *at;
    size_t left;
};

static inline u8 take_byte(struct input *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->at++;
}

static inline u32 take_number(struct input *in, u32 bytes)
{
    u32 value = 0;
    for (u32 i = 0; i < bytes; i++)
        value |= (u32)take_byte(in) << 8 * i;
    return value;
}
