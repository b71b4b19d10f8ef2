// Compares runs: what each function took before, and after; with several runs a
// side the means, and whether their difference is more than chance (welch.h).
//
// A function is known by its name and its program's path, so that it is the
// same in the next build. What it took is the time (or the events) that its
// samples stand for. Idle CPUs are left out.
#pragma once

#include <stdio.h>

#include "perf_read.h"
#include "welch.h"

enum diff_side { DIFF_BEFORE, DIFF_AFTER, DIFF_SIDES };

struct diff_row {
    char *name;     // "luaV_execute [/bin/lua]"
    double *values; // of each run: ms, or events
    struct sample_of side[DIFF_SIDES];
    struct welch welch;
    uint32_t next; // of the same hash
};

// One run, as the report's header has it.
struct diff_run {
    const char *path;
    char command[256];
    struct sprofile_info info;
    bool cut;
};

#define DIFF_BUCKETS 4096u
struct diff {
    bool total; // with what a function has called; else alone
    uint32_t count[DIFF_SIDES], runs;
    char **files; // of all runs: those before, those after
    struct diff_run *run;
    uint32_t added;        // runs so far
    struct diff_row *rows; // [0] is the sum of all
    uint32_t row_count, room;
    uint32_t buckets[DIFF_BUCKETS];
};

// The files to compare: two; or A... vs B...; or the first with all the others.
// NULL, or what is wrong with them. To be freed by diff_free.
const char *diff_init(struct diff *d, bool total, int argc, char *argv[]);
void diff_free(struct diff *d);
// The next of d->files, read. NULL, or why it cannot be compared.
const char *diff_add(struct diff *d, const struct perf_file *file,
                     struct samples *s);
// By what a sample's period is divided: ns that make a ms, or 1 of events.
double diff_unit(const struct perf_file *file);
// "ms", or the event.
const char *diff_unit_name(const struct diff *d);
// A line about how a run was measured.
void diff_print_run(FILE *out, const struct diff_run *r);
// When all were added. The rows with the greatest differences, at most `limit`
// (0: all).
void diff_print(FILE *out, struct diff *d, uint32_t limit);
void diff_json(FILE *out, struct diff *d);
