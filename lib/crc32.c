// CRC-32 by nibbles: with a 64-byte table computed at compile time.
#include "lib/crc32.h"

#define STEP(c) ((c) >> 1 ^ ((c)&1 ? 0xedb88320u : 0)) // the polynomial
#define OF(n) STEP(STEP(STEP(STEP((u32)(n)))))

static const u32 of_nibble[16] = {
    OF(0), OF(1), OF(2),  OF(3),  OF(4),  OF(5),  OF(6),  OF(7),
    OF(8), OF(9), OF(10), OF(11), OF(12), OF(13), OF(14), OF(15),
};

u32 crc32(u32 crc, const void *data, size_t size)
{
    const u8 *byte = data;
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= byte[i];
        crc = crc >> 4 ^ of_nibble[crc & 15];
        crc = crc >> 4 ^ of_nibble[crc & 15];
    }
    return ~crc;
}
