// The histogram of the address-bin profiler, exactly in the format of the
// assignment "Profile your processes!" (see <strobe/profile.h>).
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <strobe/profile.h>

// Prints at most `rows` rows (>= 1). `origin` is subtracted from addresses.
void histogram_print(FILE *out, const char *program, const struct prof_data *p,
                     uint32_t rows, uint32_t origin);

// Parses "START-END", hexadecimal, with START below END. Returns false if the
// text is invalid.
bool histogram_parse_range(const char *text, uint32_t *start, uint32_t *end);
