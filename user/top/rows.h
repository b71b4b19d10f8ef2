// The rows of a view: selected, ordered, with cells as text. Pure.
#pragma once

#include "views.h"

#define FILTER_MAX 32 // bytes, including the NUL
#define CELL_MAX 72

// What is shown, and how. Set by options and keys.
struct choice {
    const struct view *view;
    unsigned sort;           // index of the column
    bool reverse;            // of the natural order: the largest number first,
                             // texts and ids in ascending order
    bool active_only;        // only rows with activity
    uint32_t task;           // show only this one; SYSINFO_ALL: all
    char filter[FILTER_MAX]; // substring of a text, or a whole id; "": none
};

// Selects another view, with its default order.
void choose_view(struct choice *c, const struct view *v);

struct rows {
    struct row *rows;
    size_t count, room;
};

// Fills `out` (zeroed before the first call, then reused) with the rows that
// `choice` selects, in its order. Returns false, with no rows, when out of
// memory.
bool rows_make(struct comparison *c, const struct choice *choice,
               struct rows *out);
void rows_free(struct rows *r);

// Formats a cell; `hz` is the frequency of the cycles. Control characters are
// replaced by "?". Returns `buf`.
const char *cell_format(const struct column *column, union cell cell,
                        uint64_t hz, char buf[CELL_MAX]);
// The letter for a thread's state.
char state_letter(uint32_t state);
