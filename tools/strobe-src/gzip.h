// A gzip file (RFC 1952) whose data is not compressed (RFC 1951, 3.2.4), for
// readers that want one.
#pragma once

#include <stddef.h>
#include <stdio.h>

void gzip_write(FILE *out, const void *bytes, size_t size);
