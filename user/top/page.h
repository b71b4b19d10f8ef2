// A page of text, cut at the screen's width, with highlighting.
//
// Drawing fills a page; the screen shows it, or batch mode prints it. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PAGE_WIDE 512 // columns of a page without a screen

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_REVERSE };

// Maximum size of a line: its columns, and escape sequences for highlighting.
#define LINE_BYTES (PAGE_WIDE + 256)

struct line {
    unsigned width;   // columns used
    size_t size;      // bytes used
    enum style style; // of the last text added
    char text[LINE_BYTES];
};

struct page {
    struct line *lines;
    unsigned rows, columns; // available; rows increase if `grows`
    unsigned used;          // lines begun
    bool highlighting;      // false: no highlighting
    bool grows;             // rows are added when needed
    bool broken;            // memory ran out: lines are missing
};

// Initialise a page of a fixed size (false: out of memory), or one that grows.
bool page_init(struct page *p, unsigned rows, unsigned columns);
void page_init_growing(struct page *p, unsigned columns);
void page_free(struct page *p);
// Removes all lines.
void page_clear(struct page *p);

// Begins the next line. Lines below the last row are dropped.
void page_line(struct page *p);
// Appends to the line, as far as the text fits.
void page_put(struct page *p, enum style style, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
// Columns left in the line.
unsigned page_columns_left(const struct page *p);
// Lines left on the page.
unsigned page_rows_left(const struct page *p);
