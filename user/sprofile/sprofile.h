// What the parts of sprofile share.
#pragma once

#include "user/libprofile/header.h"
#include "user/libprofile/reading.h"
#include "user/libprofile/tables.h"
#include "user/libstrobe/strobe.h"

struct settings {
    struct sprofile_options options;    // what is asked of the kernel, for all
    struct event_names sources, events; // -s, -e
    char **command;                     // run meanwhile; NULL: none
    const char *output;                 // -o: a perf.data file, or NULL
    char **argv;                        // all that sprofile was called with
    uint32_t seconds;      // 0: until ^C, or the end of the command
    double min_percent;    // what is less is summed up
    uint32_t rows;         // of each list, and of `top`; 0: all
    uint32_t ring_seconds; // -m: of data that the buffers hold
    bool per_cpu, json, live, tree, inverted, rows_given;
    struct tree_limit tree_limit;
};

// --- run.c ------------------------------------------------------------------

struct result {
    struct events events;
    int status;
    uint64_t shown_ns; // live: of the session's time, until the last screen
};

// Samples the system: r->events. `every` is called each two seconds in live
// mode, between records, and once at the end of a shorter run; NULL: not live.
void run(const struct settings *s, struct result *r,
         void (*every)(const struct settings *s, struct result *r));

// --- report.c ---------------------------------------------------------------

void report(const struct settings *s, struct result *r);
void report_json(struct result *r);
// The screen of `sprofile top`.
void show_top(const struct settings *s, struct result *r);
