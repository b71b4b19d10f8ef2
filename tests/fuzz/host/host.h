// Shared by the libFuzzer harnesses: each has one function, which is called
// with untrusted bytes. It aborts when a promise is broken; AddressSanitizer
// and UBSan find the rest. `make fuzz-host` looks for new inputs, `make test`
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

// Copies the bytes to memory of exactly that size, so that an overread is
// found. The caller frees it.
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
