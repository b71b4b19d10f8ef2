// Writes a gzip file (RFC 1952) with stored, uncompressed data (RFC 1951,
// 3.2.4), for readers that require gzip.
#pragma once

#include <stddef.h>
#include <stdio.h>

void gzip_write(FILE *out, const void *bytes, size_t size);
