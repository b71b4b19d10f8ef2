// The header of every report: what was requested, what was measured, and all
// that was lost or left out.
#pragma once

#include <stdio.h>

#include "perf_format.h"
#include "samples.h"

double percent(double part, double whole);

// Whether the expected number of samples is known.
bool header_expects(const struct sprofile_info *info);

// Whether a share has no error, as every event is a sample.
bool header_exact(const struct sprofile_info *info);

// Whether none or nearly none of the expected ticks came, in whatever column:
// less than one in STARVED_PART, of STARVED_LEAST at least. Then the report's
// first line says so and what to do, and the tool must fail.
#define STARVED_PART 20
#define STARVED_LEAST 50
bool header_starved(const struct sprofile_info *info);

// Whether more than one in LATE_PART ticks of a timer came late, together with
// others: the machine was kept from running. Then a line says so.
#define LATE_PART 20
bool header_late(const struct sprofile_info *info);

// By how many percentage points a row can have too much, if that is code that
// is dear to sample: where sampling at fixed distances takes more than
// LEAN_LEAST of the time, up to that part of it. Else 0.
#define LEAN_LEAST 0.05
double header_lean(const struct sprofile_info *info);

// Prints the header's lines from "Source:" on. `event`: its number among events
// that are counted together; `unknown`: samples without a symbol.
void header_print(FILE *out, const struct sprofile_info *info,
                  const struct sprofile_options *asked, const struct samples *s,
                  uint32_t event, uint64_t unknown);
// Prints the lines about the way from the measured machine to this one.
void header_print_remote(FILE *out, const struct perf_remote *r, uint32_t cpus);
// Prints the same as header_print as members of a JSON object, each followed by
// a comma.
void header_print_json(FILE *out, const struct sprofile_info *info,
                       const struct sprofile_options *asked,
                       const struct samples *s, uint64_t unknown);
// Prints a line that says which event of the run a report is about. Prints
// nothing if the run has a single event.
void header_print_event(FILE *out, const char *name, uint32_t event,
                        uint32_t count);
// Prints on `out`, each line after `prefix`, the sampled images that have no
// symbols. Call it after a view was made.
void header_complain(FILE *out, const char *prefix, const struct samples *s);
