// The rows of a view: chosen, ordered, and their cells as text. Pure.
#pragma once

#include "views.h"

#define FILTER_MAX 32 // characters, with the NUL
#define CELL_MAX 72

// What is shown, and how. Changed by options and keys.
struct choice {
    const struct view *view;
    unsigned sort;           // column
    bool reverse;            // of the natural order: the largest number first,
                             // texts and ids from the first
    bool active_only;        //
    uint32_t task;           // only of this one; SYSINFO_ALL: of all
    char filter[FILTER_MAX]; // part of a text, or a whole id; "": none
};

// Shows another view, sorted as it wants to be at first.
void choose_view(struct choice *c, const struct view *v);

struct rows {
    struct row *rows;
    size_t count, room;
};

// Fills `out` (zeroed at first, used again) with the rows that `choice` wants,
// in its order. False: not enough memory; there are no rows then.
bool rows_make(struct comparison *c, const struct choice *choice,
               struct rows *out);
void rows_free(struct rows *r);

// A cell as people read it; `hz` is the frequency that cycles are counted in.
// Characters that a terminal might obey become "?". Returns `buf`.
const char *cell_format(const struct column *column, union cell cell,
                        uint64_t hz, char buf[CELL_MAX]);
// The one letter of a thread's state.
char state_letter(uint32_t state);
