// Decompression of zlib streams (RFC 1950), as in compressed sections of ELF
// files.
#pragma once

#include "lib/types.h"

// A stream's contents are at most so many times as large as the stream.
#define INFLATE_RATIO_MAX 1032u

// Decompresses a stream to `out`. True: its contents have exactly `size` bytes,
// and their checksum is right. The stream is not trusted.
bool inflate(const void *stream, size_t bytes, u8 *out, size_t size);
