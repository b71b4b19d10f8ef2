// Drawing what was computed onto a page.
#pragma once

#include "page.h"
#include "rows.h"

// Lines about the machine: the header of the thesis's top (its figure B.1).
void draw_header(struct page *p, const struct comparison *c);
void draw_cpus(struct page *p, const struct comparison *c); // a part of it
// One line that says what is shown and how.
void draw_status(struct page *p, const struct choice *choice, double delay);
// Titles, and rows from `first` on as far as there is room.
void draw_rows(struct page *p, const struct comparison *c,
               const struct choice *choice, const struct rows *rows,
               size_t first);
void draw_help(struct page *p);
