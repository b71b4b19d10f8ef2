// The data that reports show, made from the counts of samples: tables of
// functions, addresses, threads, CPUs and tasks; and the tree of calls.
#pragma once

#include "samples.h"

enum view_by { BY_SYMBOL, BY_ADDRESS, BY_THREAD, BY_CPU, BY_TASK };

// Selects samples; zeroed: all.
struct view_filter {
    bool by_task, by_cpu, by_event;
    uint32_t task, cpu, event;
    uint32_t modes; // a bitmap of the modes to leave out
    // A further condition, or NULL.
    bool (*wanted)(void *arg, const struct sample_count *c);
    void *arg;
};

bool view_passes(const struct sample_count *c, const struct view_filter *f);

struct view_row {
    uint32_t image, address; // start of the symbol, or the address without one
    const char *name;        // not NUL-terminated; NULL: no symbol
    uint32_t name_size;
    uint32_t key; // the thread, CPU, task
    // `self`: samples here. `total`: samples here or in called functions, each
    // counted once even if its chain has the row several times. The periods
    // are their weights, late ticks included; shares are computed from the
    // periods (shares.h).
    uint64_t self, total, self_period, total_period;
};

struct view {
    struct view_row *rows; // sorted by self_period, the highest first
    uint32_t count;
    uint64_t samples, period; // of the samples that pass the filter
    double squares;           // sum of their squared periods
    uint64_t modes[MODES];    // of these samples, too
    uint64_t mode_periods[MODES];
    uint64_t irqs_off, unknown; // `unknown`: without a symbol
    uint32_t *row_of; // the row of each chain node (BY_SYMBOL, ADDRESS)
};

// Returns -1 when out of memory.
int view_make(struct view *v, struct samples *s, enum view_by by,
              const struct view_filter *filter);
void view_free(struct view *v);

// The tree of calls by symbol: from the outermost callers inwards or, inverted,
// from the innermost functions outwards to their callers.
struct tree_node {
    uint32_t row; // in the view that it is made from; UINT32_MAX: the root
    uint32_t parent, first, next; // node numbers; 0: none
    uint64_t self, total, self_period, total_period;
};
struct tree {
    struct tree_node *nodes; // [0] is the root; children sorted by total_period
    uint32_t count, room;
};
// `v` is by symbol or address, with the same filter. Returns -1 when out of
// memory.
int tree_make(struct tree *t, const struct view *v, const struct samples *s,
              const struct view_filter *filter, bool inverted);
void tree_free(struct tree *t);
