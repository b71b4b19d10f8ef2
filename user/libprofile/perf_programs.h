// Which program each task ran, and when, in a perf.data file. The task records
// lie anywhere in the file and are sorted by time before any sample is read.
#pragma once

#include "perf_walk.h"
#include "samples.h"

// Adds the programs, their images, and the address of the vDSO. Returns NULL,
// or an error message for the user.
const char *perf_read_programs(struct samples *s,
                               const struct perf_layout *layout);
