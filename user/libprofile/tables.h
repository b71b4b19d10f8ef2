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
// Branches with less than `min` percent are summed up; `how_all` is the option
// that shows them.
void tree_print(const struct tree *t, const struct view *v, bool inverted,
                double min, const char *how_all, const struct naming *naming);
