// Draws the computed data on a page.
#pragma once

#include "page.h"
#include "rows.h"

// Draws the lines about the machine: the header of the thesis's top (its figure
// B.1).
void draw_header(struct page *p, const struct comparison *c);
void draw_cpus(struct page *p,
               const struct comparison *c); // the header's part about CPUs
// Draws one line that says what is shown and how.
void draw_status(struct page *p, const struct choice *choice, double delay);
// Draws the titles, and rows from `first` on until the page is full.
void draw_rows(struct page *p, const struct comparison *c,
               const struct choice *choice, const struct rows *rows,
               size_t first);
void draw_help(struct page *p);
