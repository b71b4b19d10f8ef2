#include "user/libremote/siphash.h"

#include <string.h>

#define COMPRESSION_ROUNDS 2
#define FINAL_ROUNDS 4
#define FINAL_MARK 0xff
#define WORD sizeof(uint64_t)

static uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void mix(uint64_t v[4], int rounds)
{
    while (rounds-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

// Both sides are little endian.
static uint64_t word(const uint8_t *bytes, size_t size)
{
    uint64_t value = 0;

    memcpy(&value, bytes, size);
    return value;
}

static void compress(uint64_t v[4], uint64_t m)
{
    v[3] ^= m;
    mix(v, COMPRESSION_ROUNDS);
    v[0] ^= m;
}

uint64_t siphash(const uint8_t key[SIPHASH_KEY], const void *bytes, size_t size)
{
    const uint64_t k0 = word(key, WORD), k1 = word(key + WORD, WORD);
    const uint8_t *at = bytes, *end = at + size / WORD * WORD;
    uint64_t v[4] = { k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d,
                      k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573 };

    for (; at < end; at += WORD)
        compress(v, word(at, WORD));
    compress(v, word(at, size % WORD) | (uint64_t)size << 56);
    v[2] ^= FINAL_MARK;
    mix(v, FINAL_ROUNDS);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
