// UTF-8 (RFC 3629).
#pragma once

#include "lib/types.h"

#define UTF8_MAX 4 // bytes of a character

// Takes the first character of a string that is valid UTF-8, and moves the
// pointer behind it. 0 at the end of the string.
u32 utf8_next(const char **text);
// Stores a character of up to 0x10ffff; returns the number of bytes.
size_t utf8_put(u32 character, char text[UTF8_MAX]);

// Bytes that follow the first byte of a character; -1: none begins so.
int utf8_following(u8 first);
// The character of these bytes, n - 1 of which follow the first one; 0: they
// are none, or longer than necessary.
u32 utf8_decode(const u8 *bytes, size_t n);
