// SipHash-2-4 (Aumasson, Bernstein: SipHash: a fast short-input PRF, 2012): a
// keyed 64-bit code of a message. Without the key nobody can compute it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_KEY 16

uint64_t siphash(const uint8_t key[SIPHASH_KEY], const void *bytes,
                 size_t size);
