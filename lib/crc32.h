// The CRC-32 of zlib, Ethernet and PNG (ITU-T V.42, 8.1.1.6.2).
#pragma once

#include "lib/types.h"

// Continues the checksum `crc` of the preceding bytes over `size` more bytes;
// `crc` is 0 at the beginning.
u32 crc32(u32 crc, const void *data, size_t size);
