// A child process with pipes to its standard input and output, such as
// addr2line or objdump of binutils.
#pragma once

#include <stdio.h>
#include <sys/types.h>

struct coprocess {
    pid_t pid;
    FILE *to, *from;
};

// Starts `argv` (ends with NULL; argv[0] is searched in PATH) in `folder`
// (NULL: the current one). Returns -1 and errno if that fails; a missing
// program is reported by coprocess_end.
int coprocess_start(struct coprocess *c, const char *const argv[],
                    const char *folder);
// Closes the pipes, waits for the exit and returns the exit status; 127: there
// is no such program.
int coprocess_end(struct coprocess *c);
