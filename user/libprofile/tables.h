// The tables and trees of the reports. The tool provides the names of rows.
#pragma once

#include "binomial.h"
#include "views.h"

struct naming {
    void (*name)(char *out, size_t size, const struct view_row *row, void *arg);
    void *arg;
};

// Returns false if there is no sort key of this name.
bool view_by_name(const char *name, enum view_by *out);

// The name of a row by thread, CPU or task: "task 7 lua".
void key_text(char *out, size_t size, const struct samples *s, enum view_by by,
              const struct view_row *row);

// The 95 % confidence interval of a row's share of the period, as far as the
// samples of all CPUs are independent (shares.h).
struct interval view_interval(const struct view *v, const struct view_row *row);
// Prints the rows that have samples of their own, at most `limit` (0: all), and
// a summary of the rows left out. `error`: each with its confidence interval.
void rows_print(const struct view *v, enum view_by by, uint32_t limit,
                bool error, const struct naming *naming);
// Limits a tree to the `rows` lines with the most time or, if `rows` is 0, to
// nodes with at least `min` percent; then the smaller callees of each function
// are folded into one line. (A chain without branches is not indented; of
// several branches each has a dash.) `show_all` is the option that shows all.
struct tree_limit {
    uint32_t rows;
    double min;
    const char *show_all;
};
// The limit for --rows: `rows` if `given`; 0: all.
struct tree_limit tree_limit(uint32_t rows, bool given);
void tree_print(const struct tree *t, const struct view *v, bool inverted,
                const struct tree_limit *limit, const struct naming *naming);
