// The tasks that are running when a session begins: its records do not report
// them.
#pragma once

#include "events.h"

// Adds the programs of `task`, or of all tasks (0), to the samples of all
// events. Call it after the session has begun, so that no task is missed. Ends
// the program with a message if the list of tasks cannot be read.
void running_add(struct events *e, uint32_t task);
// Holds the file of a program that is about to run: it may be replaced or
// deleted before its exec record is read.
void running_hold(struct events *e, const char *path);
