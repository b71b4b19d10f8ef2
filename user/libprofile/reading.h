// Reads the running sessions of a run into counted samples and, with -o, a
// file.
#pragma once

#include "events.h"
#include "recording.h"

struct reading {
    struct events *events; // sessions are running
    struct recording recording;
};

// Waits until a session has records, and takes them. Also returns when the
// descriptor `other` (-1: none) can be read, on a time-out or on a signal.
// Returns false if all sessions are over or failed; a failure was reported.
bool reading_take(struct reading *r, int timeout_ms, int other);
// Stops sampling and takes the records that are left in the rings.
void reading_drain(struct reading *r);
// Pauses or resumes all sessions. Returns false if one of them failed to.
bool reading_pause(struct reading *r, bool pause);
// Reads the totals of all sessions so far.
void reading_info(struct reading *r);
// Reads the final totals, and ends the sessions and the file. Returns false,
// after an error message, if the file is incomplete.
bool reading_end(struct reading *r);
