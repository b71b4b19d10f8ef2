// What the TSC counts, and how fast the CPUs' cores ran, for a header.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include <strobe/core_clock.h>

#define CORE_CLOCK_SIZE 240

// "" if the TSC's rate is known, else a phrase such as ", rate +-2.0 %".
const char *core_clock_rate(uint32_t tsc_error_ppm);
// Writes a phrase such as "TSC 2.400 GHz, constant; turbo on; idle by HLT". ""
// if nothing is known that a reader must know to interpret times.
void core_clock_text(char text[CORE_CLOCK_SIZE],
                     const struct strobe_core_clock *c, uint64_t tsc_hz);
// Prints it as the line "Clock:" of a header, or nothing.
void core_clock_print(FILE *out, const struct strobe_core_clock *c,
                      uint64_t tsc_hz);
// Prints the member "clock" of a JSON object, followed by a comma.
void core_clock_print_json(FILE *out, const struct strobe_core_clock *c);
