// Which program ran when, of a perf.data file: its records of what became of
// tasks lie anywhere, and are put into the order of time before any sample is
// looked at.
#pragma once

#include "perf_walk.h"
#include "samples.h"

// Adds the programs, their images, and where the vDSO was. NULL; or, in words
// for the user, why that cannot be.
const char *perf_read_programs(struct samples *s,
                               const struct perf_layout *layout);
