// Shared by the parts of trace.
#pragma once

#include "user/libprofile/choose_functions.h"
#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"
#include "user/libtrace/points.h"

#define TRACE_FILE_NAME "trace.out"

struct settings {
    struct trace_options options;
    bool own_only;  // -1: only what is done for the command
    bool functions; // -F or -Z: those of `choice`
    struct function_choice choice;
    const char *output;
    const char *sensors;  // -s: patterns of those to record; NULL: none
    uint64_t interval_ns; // -i: between samples of them
    char **command;
};

// Records while the command runs, or until the task ends or ^C. Returns the
// exit status.
int record(const struct settings *s);
// Asks the flights that there are for a snapshot. Returns the exit status.
int ask_for_snapshots(void);
