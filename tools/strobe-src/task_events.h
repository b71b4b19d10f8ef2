// What became of tasks, as the file has it: forks, execs and ends.
#pragma once

#include "strobe.h"

enum task_event_kind { TASK_FORKED, TASK_BEGAN, TASK_EXECED, TASK_ENDED };

struct task_event {
    enum task_event_kind kind;
    uint32_t task;  // whose it is
    uint32_t other; // FORKED: the child; BEGAN: the parent
    uint64_t time;  // ns
    char name[16];  // EXECED: the program's
};

struct task_events {
    struct task_event *list; // by task; of one task by time
    size_t count, room;
};

// Reads them from the file of `p`. (A fork is two of them, the parent's and the
// child's.) No memory, and a file that is gone, end the program.
void task_events_read(struct task_events *t, const struct profile *p);
void task_events_free(struct task_events *t);
// The first one of a task with this number or a higher one; `count`: none.
size_t task_events_of(const struct task_events *t, uint32_t task);
