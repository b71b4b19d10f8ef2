// What -o of profile and sprofile does: the sessions as a perf.data file,
// beside the report. What goes wrong at the beginning ends the program with a
// message.
#pragma once

#include "events.h"
#include "perf_write.h"

struct recording {
    const char *path; // NULL: none was asked for, and nothing is done
    struct perf_writer writer;
    struct events *events;
    int64_t next_info_ms;
};

// `r->path` is set. When the sessions have begun and their samples know what
// programs there are. `command`: of this program, all of it.
void recording_begin(struct recording *r, char *const *command,
                     struct events *events);
// Writes what the samples have counted since the last time.
void recording_flush(struct recording *r);
// When the events have told their totals. False: the file is not what it should
// be; it has been said why.
bool recording_end(struct recording *r);
