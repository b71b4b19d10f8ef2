// Reading the sessions of a run as they go on: into counted samples and, with
// -o, a file.
#pragma once

#include "events.h"
#include "recording.h"

struct reading {
    struct events *events; // begun
    struct recording recording;
};

// Waits until a session has records, and takes them, or until `other` (a
// descriptor; -1: none) can be read, the time is over, or a signal has come.
// False: all sessions are over, or broken, which has been said.
bool reading_take(struct reading *r, int timeout_ms, int other);
// Stops sampling and takes what is still in the rings.
void reading_drain(struct reading *r);
// Pauses all of them, or lets them go on. False: that cannot be.
bool reading_pause(struct reading *r, bool pause);
// Reads the totals of all sessions until now.
void reading_info(struct reading *r);
// Ends the sessions, after they have told their totals, and the file. False:
// the file is not what it should be; it has been said why.
bool reading_end(struct reading *r);
