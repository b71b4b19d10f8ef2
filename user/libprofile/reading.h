// Reading a session as it goes on: into counted samples and, with -o, a file.
#pragma once

#include "recording.h"

struct reading {
    struct profile_session *session;
    struct samples *samples;
    struct recording *recording;
};

// Takes one answer and tells how many bytes it had; that there is none in time,
// or a signal, is no harm. False: the session is over, or broken, which is
// said.
bool reading_take(const struct reading *r, int timeout_ms, int *size);
// Stops sampling and takes what is still in the rings.
void reading_drain(const struct reading *r);
// Ends the session, after it has told its totals, and the file. False: the file
// is not what it should be; it has been said why.
bool reading_end(const struct reading *r, struct sprofile_info *info);
