// Compares runs: the cost of each function before and after. With several runs
// a side it compares the means, and tests whether their difference is
// statistically significant (welch.h).
//
// A function is identified by its name and its program's path, so that it
// matches across builds. Its cost is the time (or number of events) that its
// samples represent. Idle CPUs are left out.
#pragma once

#include <stdio.h>

#include "perf_read.h"
#include "welch.h"

enum diff_side { DIFF_BEFORE, DIFF_AFTER, DIFF_SIDES };

struct diff_row {
    char *name;     // "luaV_execute [/bin/lua]"
    double *values; // one for each run: ms, or events
    struct sample_of side[DIFF_SIDES];
    struct welch welch;
    uint32_t next; // next row with the same hash
};

// One run, with the values that the report's header shows.
struct diff_run {
    const char *path;
    char command[256];
    struct sprofile_info info;
    bool cut;
};

#define DIFF_BUCKETS 4096u
struct diff {
    bool total; // count called functions, too; else self only
    uint32_t count[DIFF_SIDES], runs;
    char **files; // of all runs: those before, then those after
    struct diff_run *run;
    uint32_t added;        // runs added so far
    struct diff_row *rows; // [0] is the sum of all rows
    uint32_t row_count, room;
    uint32_t buckets[DIFF_BUCKETS];
};

// Parses the files to compare: two files; or A... vs B...; or one file and all
// files that it is compared with. Returns NULL, or a message that says what is
// wrong with the arguments. Free with diff_free.
const char *diff_init(struct diff *d, bool total, int argc, char *argv[]);
void diff_free(struct diff *d);
// Adds the next of d->files, which the caller has read. Returns NULL, or the
// reason why it cannot be compared.
const char *diff_add(struct diff *d, const struct perf_file *file,
                     struct samples *s);
// The divisor for a sample's period: the nanoseconds in a millisecond, or 1 for
// events.
double diff_unit(const struct perf_file *file);
// "ms", or the name of the event.
const char *diff_unit_name(const struct diff *d);
// Prints a line about how a run was measured.
void diff_print_run(FILE *out, const struct diff_run *r);
// Prints the rows with the greatest differences, at most `limit` (0: all). Call
// it after all runs were added.
void diff_print(FILE *out, struct diff *d, uint32_t limit);
void diff_json(FILE *out, struct diff *d);
