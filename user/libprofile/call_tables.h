// The tables of a trace of the kernel's calls, as cprofile and strobe print
// them.
#pragma once

#include <stdio.h>

#include "call_paths.h"

enum call_sort { CALLS_BY_TIME, CALLS_BY_CALLS, CALLS_BY_NAME, CALLS_IN_ORDER };

struct call_printing {
    FILE *out;
    enum call_sort sort;
    uint32_t rows;   // of each table; 0: all
    double min;      // percent of all time that a path in a tree has in total
    bool full_paths; // also where the paths' order shows who calls whom
    const char *show_all; // the option that shows all rows
    uint64_t tsc_hz;
    // The name of a function, valid until the end.
    const char *(*name)(void *arg, uint32_t function);
    void *arg;
};

// What was traced, and first of all which calls are missing.
void call_print_header(const struct call_printing *c,
                       const struct calls_info *info);
// A row of each function. An error (no memory) ends the program.
void call_print_functions(const struct call_printing *c,
                          const struct call_paths *p);
// A row of each path: by time or calls with its whole path, else indented below
// its caller.
void call_print_paths(const struct call_printing *c,
                      const struct call_paths *p);
// The paths, indented below their callers, the one with most time first.
void call_print_tree(const struct call_printing *c, const struct call_paths *p);
void call_print_arcs(const struct call_printing *c,
                     const struct calls_arc *arcs, uint32_t count);

// The order of `p` in which each path is behind its caller and before the next
// path of it; siblings by `sort`, or by total time. The caller frees it.
uint32_t *call_paths_order(const struct call_printing *c,
                           const struct call_paths *p, bool by_total);
// Writes the whole path, "outer;inner", roots included.
void call_put_path(const struct call_printing *c, const struct call_paths *p,
                   uint32_t path);
double call_ns(const struct call_printing *c, uint64_t cycles);
