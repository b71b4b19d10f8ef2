#include "gzip.h"

#include "lib/crc32.h"

#include <stdint.h>

#define BLOCK_MAX 0xffffu

static void put32(FILE *out, uint32_t number)
{
    for (int shift = 0; shift < 32; shift += 8)
        fputc((int)(number >> shift & 0xff), out);
}

void gzip_write(FILE *out, const void *bytes, size_t size)
{
    // Magic, deflate, no flags, no time, no hints, unknown system.
    static const uint8_t head[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff };
    const uint8_t *at = bytes;
    size_t left = size;

    fwrite(head, 1, sizeof(head), out);
    do {
        uint32_t block = left < BLOCK_MAX ? (uint32_t)left : BLOCK_MAX;
        fputc(block == left ? 1 : 0, out); // final or not; stored
        put32(out, block | ~block << 16);
        fwrite(at, 1, block, out);
        at += block;
        left -= block;
    } while (left > 0);
    put32(out, crc32(0, bytes, size));
    put32(out, (uint32_t)size);
}
