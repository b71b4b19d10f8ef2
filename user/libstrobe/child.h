// A program that is measured from its first instruction on: it waits, in a
// child, until the measurement has begun.
#pragma once

#include <stdbool.h>

struct child {
    char *path; // freed by the owner
    int pid, go_fd, status_fd;
    bool ended; // child_has_ended has seen it, with this status
    int status;
};
// Forks a process that will execute the program after child_go, and ignores ^C
// from then on. Ends this program with a message on failure.
void child_start(struct child *c, char **command);
void child_go(struct child *c);
// Whether the program has ended; does not wait.
bool child_has_ended(struct child *c);
// Returns a descriptor that can be read once a child of this program has ended.
// Ends this program with a message on failure.
int child_watch(void);
// Waits for the program's end. Returns its exit status as a shell reports it.
// Ends this program with a message if the program could not be executed.
int child_end(struct child *c);
