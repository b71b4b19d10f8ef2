// Call trees of runs that are compared (libprofile's diff.h): one from the
// outermost callers, and an inverted one from the innermost functions. Each
// node has the inclusive cost in each run.
//
// As in diff.h, a function is identified by its name and its file's path. A
// program, identified by its name, is the caller of its outermost functions.
// Idle CPUs are left out. Lack of memory ends the program.
#pragma once

#include "user/libprofile/chains.h"
#include "user/libprofile/samples.h"

struct diff_symbol {
    char *name, *path; // a program's path is ""
    uint32_t number;
};

struct diff_tree {
    struct chains paths; // the address of a place is a symbol's number
    double *values;      // [node * runs + run]: ms, or events
    uint32_t room;       // number of nodes in the allocation of `values`
};

struct diff_trees {
    uint32_t runs, added;
    struct diff_symbol **symbols; // indexed by number
    uint32_t symbol_count, symbol_room;
    void *by_name; // tree of tsearch()
    struct diff_tree calls, inverted;
};

void diff_trees_init(struct diff_trees *t, uint32_t runs);
void diff_trees_free(struct diff_trees *t);
// Adds the samples of the next run. `unit`: diff_unit().
void diff_trees_add(struct diff_trees *t, struct samples *s, double unit);
// Adds the cost of each node to its ancestors. Call it once, after all runs.
void diff_trees_sum(struct diff_trees *t);
// How often a path was cut because a tree was full. Its samples then count for
// the part of the path that is in the tree.
static inline uint64_t diff_trees_cut(const struct diff_trees *t)
{
    return t->calls.paths.cut + t->inverted.paths.cut;
}
