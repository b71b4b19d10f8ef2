// Shared by all parts of cprofile.
#pragma once

#include "user/libprofile/call_tables.h"
#include "user/libprofile/choose_functions.h"
#include "user/libprofile/trace_begin.h"
#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"

struct settings {
    struct calls_options options;
    struct function_choice choice;
    bool own_only; // -1: only what is done for the command
    bool functions_only, paths_only, tree, full_paths, arcs, json;
    enum call_sort sort;
    uint32_t rows;
    double min; // of the tree, in percent
    const char *output;
    char **argv, **command;
};

// --- run.c ------------------------------------------------------------------

// Traces while the command runs, or until the task ends or ^C. Returns the exit
// status.
int run(const struct settings *s);
// cprofile get and reset: of the trace that runs.
int get(const struct settings *s);
int reset(void);

// --- show.c -----------------------------------------------------------------

// Prints the trace: its info, with the records behind it. Writes it to -o.
// Returns the exit status.
int show(const struct settings *s, const struct calls_info *info);
