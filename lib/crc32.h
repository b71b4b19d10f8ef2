// The CRC-32 of zlib, Ethernet and PNG (ITU-T V.42, 8.1.1.6.2).
#pragma once

#include "lib/types.h"

// The checksum of `size` bytes that follow on bytes whose checksum is `crc`; 0
// for those at the beginning.
u32 crc32(u32 crc, const void *data, size_t size);
