// The tasks that run already when a session begins, of which its records tell
// nothing.
#pragma once

#include "events.h"

// Adds what they run to the samples of all events: of `task`, or of all (0).
// After the session has begun, so that none is missed. Ends the program, with a
// message, when the list cannot be had.
void running_add(struct events *e, uint32_t task);
// Holds the file of a program that is going to run: it may be replaced or
// deleted before the records that tell of it are read.
void running_hold(struct events *e, const char *path);
