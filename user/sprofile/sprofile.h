// Declarations shared by the parts of sprofile.
#pragma once

#include "user/libprofile/header.h"
#include "user/libprofile/reading.h"
#include "user/libprofile/tables.h"
#include "user/libstrobe/strobe.h"

struct settings {
    struct sprofile_options options;    // of the sessions, common to all
    struct event_names sources, events; // -s, -e
    char **command;                     // runs during the session; NULL: none
    const char *output;                 // -o: a perf.data file, or NULL
    char **argv;                        // the whole command line of sprofile
    uint32_t seconds;      // 0: until ^C, or the end of the command
    double min_percent;    // rows below it are folded into one
    uint32_t rows;         // of each list, and of `top`; 0: all
    uint32_t ring_seconds; // -m: capacity of the buffers
    uint32_t period;       // -c
    bool quiet, per_cpu, json, live, tree, inverted, rows_given;
    struct tree_limit tree_limit;
};

// --- run.c ------------------------------------------------------------------

struct result {
    struct events events;
    int status;
    uint64_t shown_ns; // live: session time at the last screen
};

// Samples the system: r->events. In live mode `every` is called every two
// seconds, between records, and once at the end of a shorter run. NULL: not
// live.
void run(const struct settings *s, struct result *r,
         void (*every)(const struct settings *s, struct result *r));

// --- report.c ---------------------------------------------------------------

void report(const struct settings *s, struct result *r);
void report_json(struct result *r);
// Prints the screen of `sprofile top`.
void show_top(const struct settings *s, struct result *r);
