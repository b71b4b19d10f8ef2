// What -o of profile and sprofile does: the session as a perf.data file, beside
// the report. What goes wrong at the beginning ends the program with a message.
#pragma once

#include "perf_write.h"
#include "user/libstrobe/strobe.h"

struct recording {
    const char *path; // NULL: none was asked for, and nothing is done
    struct perf_writer writer;
    struct profile_session *session;
    int64_t next_info_ms;
};

// `r->path` is set. When the session has begun and `samples` knows what
// programs there are. `command`: of this program, all of it.
void recording_begin(struct recording *r, char *const *command,
                     struct profile_session *session,
                     const struct sprofile_options *asked,
                     struct samples *samples);
// Takes a piece of the stream that `samples` has taken.
void recording_take(struct recording *r, const void *bytes, size_t size);
// False: the file is not what it should be; it has been said why.
bool recording_end(struct recording *r, const struct sprofile_info *info);
