// The profiler or top that a session runs, in a process group of its own.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct program {
    pid_t pid;           // 0: none
    int file, text;      // its perf.data and its output; -1: closed
    uint64_t stopped_ms; // 0: was not asked to end
    bool ended;
    int status; // once it has ended, as a shell has it
};

// Starts it: `kind` (enum remote_kind) with these words, each ended by a NUL.
// Returns -1 and sets errno on failure.
int program_start(struct program *p, uint8_t kind, const char *words,
                  size_t words_size);
// Asks it to end, as ^C does; kills it when it has not after some seconds.
void program_stop(struct program *p, uint64_t now);
// Whether it has ended; kills what it has left of its group.
bool program_ended(struct program *p);
// Kills the group, if there is one, and closes all.
void program_kill(struct program *p);
