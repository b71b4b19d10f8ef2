// A program that answers line by line: binutils' addr2line, objdump.
#pragma once

#include <stdio.h>
#include <sys/types.h>

struct coprocess {
    pid_t pid;
    FILE *to, *from;
};

// Starts `argv` (argv[0] by PATH; NULL ends it) in `folder`
// (NULL: in this one). -1 and errno: it cannot be started; that there is no
// such program shows when it ends.
int coprocess_start(struct coprocess *c, const char *const argv[],
                    const char *folder);
// Closes its input and waits for its end: 0, or what it exited with; 127: there
// is no such program.
int coprocess_end(struct coprocess *c);
