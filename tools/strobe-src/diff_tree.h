// The trees of calls of runs that are compared (libprofile's diff.h): from the
// outermost callers, and inverted, from the innermost functions; with what each
// run took in each node and below.
//
// A function is known as there: by its name and its file's path. Programs stand
// where the outermost callers are called from, by their names. Idle CPUs are
// left out. Lack of memory ends the program.
#pragma once

#include "user/libprofile/chains.h"
#include "user/libprofile/samples.h"

struct diff_symbol {
    char *name, *path; // a program's path is ""
    uint32_t number;
};

struct diff_tree {
    struct chains paths; // of symbols: a place's address is one's number
    double *values;      // of each node, a run after the other: ms, or events
    uint32_t room;       // nodes that there is room for in `values`
};

struct diff_trees {
    uint32_t runs, added;
    struct diff_symbol **symbols; // by number
    uint32_t symbol_count, symbol_room;
    void *by_name; // of tsearch()
    struct diff_tree calls, inverted;
};

void diff_trees_init(struct diff_trees *t, uint32_t runs);
void diff_trees_free(struct diff_trees *t);
// The samples of the next run. `unit`: diff_unit().
void diff_trees_add(struct diff_trees *t, struct samples *s, double unit);
// After all runs, once: a node has then what is below it, too.
void diff_trees_sum(struct diff_trees *t);
// Samples that were counted with their callers alone: there were too many
// paths.
static inline uint64_t diff_trees_cut(const struct diff_trees *t)
{
    return t->calls.paths.cut + t->inverted.paths.cut;
}
