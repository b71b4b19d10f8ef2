// Shared by the parts of graph.
#pragma once

#include "user/libprofile/choose_functions.h"
#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"
#include "user/libtrace/graph.h"

struct settings {
    struct trace_options options;
    struct function_choice choice;
    bool own_only; // -1: only what is done for the command
    uint32_t min_ns;
    const char *output;
    char **command;
};

// Traces while the command runs, or until the task ends or ^C, and prints.
// Returns the exit status.
int run(const struct settings *s);

// --- names.c ----------------------------------------------------------------

// Names of threads, for struct graph; and functions that will be named.
void names_read(void);
void names_of_task(const struct sprofile_task *t);
void name_is_wanted(void *arg, uint32_t address);
const char *name_of_thread(uint32_t thread);
