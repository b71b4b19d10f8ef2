// The tables and trees that reports are made of. How a row is named is the
// tool's to say.
#pragma once

#include "views.h"

struct naming {
    void (*name)(char *out, size_t size, const struct view_row *row, void *arg);
    void *arg;
};

// False: there is nothing of this name to sort by.
bool view_by_name(const char *name, enum view_by *out);

// Rows with samples of their own, at most `limit`, and what is left out; 0:
// all.
void rows_print(const struct view *v, enum view_by by, uint32_t limit,
                const struct naming *naming);
// What of a tree is shown: `rows` lines, of what has most; or (0) what has
// `min` percent, and of each function in one line what it calls beside that. (A
// chain without branches is not indented; of several branches each has a dash.)
// `how_all` is the option that shows all.
struct tree_limit {
    uint32_t rows;
    double min;
    const char *how_all;
};
// As --rows has it, which gives `rows` if `given`; 0: all.
struct tree_limit tree_limit(uint32_t rows, bool given);
void tree_print(const struct tree *t, const struct view *v, bool inverted,
                const struct tree_limit *limit, const struct naming *naming);
