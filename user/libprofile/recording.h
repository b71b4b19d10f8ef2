// The -o option of profile and sprofile: writes the sessions to a perf.data
// file in addition to the report. An error at the beginning ends the program
// with a message.
#pragma once

#include "events.h"
#include "perf_write.h"

struct recording {
    const char *path; // NULL: no -o, and every function does nothing
    struct perf_writer writer;
    struct events *events;
    int64_t next_info_ms;
};

// Creates the file at `r->path`. Call it when the sessions have begun and the
// programs were added to their samples. `command`: this program's command line.
void recording_begin(struct recording *r, char *const *command,
                     struct events *events);
// Writes what was counted since the last call.
void recording_flush(struct recording *r);
// Finishes the file. Call it after the final totals were read. Returns false,
// after an error message, if the file is incomplete.
bool recording_end(struct recording *r);
