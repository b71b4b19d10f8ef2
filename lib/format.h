// printf formatting without a libc: %d %i %u %x %X %o %c %s %p %% with flags
// `-0+ #`, width and precision (also `*`), and the sizes hh h l ll z.
//
// Returns the length of the whole text, as C's vsnprintf; the text is truncated
// to size-1 characters and always terminated when size > 0. Any context.
#pragma once

#include "lib/types.h"

int format_va(char *buf, size_t size, const char *fmt, va_list args);
int format(char *buf, size_t size, const char *fmt, ...) PRINTF(3, 4);
