// What the parts of profile share.
#pragma once

#include "user/libstrobe/strobe.h"

struct settings {
    struct sprofile_options options; // what is asked of the kernel
    uint32_t task;                   // -t; 0: start `command`
    char **command;
    unsigned rows; // of the table; 0: all
    bool json;
};

// --- counts.c: samples by program counter, in bounded memory ----------------

struct pc_count {
    uint32_t pc;
    uint64_t samples; // 0: the place is free
};
struct counts {
    struct pc_count *table; // open addressing, `room` a power of two
    uint32_t room, used;
    uint64_t kernel;    // samples in the kernel
    uint64_t uncounted; // user samples at new addresses when it was full
    uint64_t malformed; // records that make no sense
};
int counts_init(struct counts *c); // -1: no memory
// Counts the samples of a piece of the kernel's stream (whole records).
void counts_add_stream(struct counts *c, const void *stream, size_t size);
void counts_free(struct counts *c);

// --- run.c: the session -----------------------------------------------------

struct result {
    char *program; // its path, or NULL if not known
    uint32_t task;
    struct counts counts;
    struct sprofile_info info;
    int status; // what profile is to exit with
};
// Both end the program themselves, with a message, when they cannot begin.
void run_program(const struct settings *s, struct result *r);
void run_task(const struct settings *s, struct result *r);

// --- report.c ---------------------------------------------------------------

void report(const struct settings *s, const struct result *r);
