// hwreport: what its files share.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Each prints one section. A part that the machine lacks is a line "not there:
// why".
void print_cpus(FILE *out);

// Prints the text as a QR code. False: it is too long, or memory is short
// (errno).
bool print_qr(FILE *out, const char *text);

// SHA-256 (FIPS 180-4), of data in pieces.
struct sha256 {
    uint32_t state[8];
    uint64_t size; // bytes so far
    uint8_t block[64];
};
void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t size);
void sha256_end(struct sha256 *s, uint8_t digest[32]);
