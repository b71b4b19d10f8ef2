// The kernel's sample sources, in words: why one cannot be had.
#pragma once

#include <stddef.h>

#include <strobe/kbox.h>

#define SOURCE_PROBLEM_SIZE 256

// "pmc: no performance counters: ...", "sundial: no such sample source; there
// are pmc, nmi-hpet, ...", "rtc: it is in use".
void source_problem(char *out, size_t size, const char *name);
// Why a session with these options could not begin, and what to do; `error` is
// the errno of profile_begin.
void sources_problem(char *out, size_t size, const struct sprofile_options *o,
                     int error);
