// The histogram of the address-bin profiler, as the assignment "Profile your
// processes!" (see <strobe/profile.h>) wants it, column by column.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <strobe/profile.h>

// Prints `rows` rows at most (>= 1). Addresses are shown less `origin`.
void histogram_print(FILE *out, const char *program, const struct prof_data *p,
                     uint32_t rows, uint32_t origin);

// "START-END", hexadecimal, START below END. False: it is not.
bool histogram_parse_range(const char *text, uint32_t *start, uint32_t *end);
