// Explains why a sample source cannot be used.
#pragma once

#include <stddef.h>

#include <strobe/kbox.h>

#define SOURCE_PROBLEM_SIZE 256

// Copies the name of the source that counts events, whether or not it is usable
// here; "" if this kernel has none.
void counting_source(char name[SPROFILE_SOURCE_NAME]);

// "pmc: no performance counters: ...", "sundial: no such sample source; there
// are pmc, nmi-hpet, ...", "nmi-rtc: NMIs are in use by one source at a time,
// now nmi-hpet for task 9".
void source_problem(char *out, size_t size, const char *name);
// Says why a session with these options could not begin, and what to do.
// `error` is the errno of profile_begin.
void sources_problem(char *out, size_t size, const struct sprofile_options *o,
                     int error);
