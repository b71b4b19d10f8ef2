// Forks, execs and ends of tasks that a file records.
#pragma once

#include "strobe.h"

enum task_event_kind { TASK_FORKED, TASK_BEGAN, TASK_EXECED, TASK_ENDED };

struct task_event {
    enum task_event_kind kind;
    uint32_t task;
    uint32_t other; // FORKED: the child; BEGAN: the parent
    uint64_t time;  // ns
    char name[16];  // EXECED: the program's name
};

struct task_events {
    struct task_event *list; // sorted by task, then by time
    size_t count, room;
};

// Reads the events from the file of `p`. A fork becomes two: FORKED of the
// parent, BEGAN of the child. Lack of memory or a missing file ends the
// program.
void task_events_read(struct task_events *t, const struct profile *p);
void task_events_free(struct task_events *t);
// Returns the index of the first event of task `task` or a higher one, or
// `count` if there is none.
size_t task_events_of(const struct task_events *t, uint32_t task);
