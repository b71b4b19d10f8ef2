// A page of text: lines cut at the screen's width, some of it highlighted.
//
// Drawing fills a page; the screen shows it, batch mode prints it. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PAGE_WIDE 512 // columns of a page that no screen limits

enum look { LOOK_PLAIN, LOOK_BOLD, LOOK_REVERSE };

// Bytes of a line: its columns, and the escape sequences that change looks.
#define LINE_BYTES (PAGE_WIDE + 256)

struct line {
    unsigned width; // columns used
    size_t size;    // bytes used
    enum look look; // of what was added last
    char text[LINE_BYTES];
};

struct page {
    struct line *lines;
    unsigned rows, columns; // there are; rows grow where nothing limits them
    unsigned used;          // lines begun
    bool looks;             // false: plain text only
    bool grows;             // as many rows as are needed
    bool broken;            // memory ran out: lines are missing
};

// A page of a fixed size (true), or one that grows.
bool page_init(struct page *p, unsigned rows, unsigned columns);
void page_init_growing(struct page *p, unsigned columns);
void page_free(struct page *p);
// Begins anew, with no line.
void page_clear(struct page *p);

// Begins the next line. One below the last row is lost.
void page_line(struct page *p);
// Adds to the line, as far as it fits.
void page_put(struct page *p, enum look look, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
// Columns that the line still has.
unsigned page_left(const struct page *p);
// Lines that the page still has.
unsigned page_rows_left(const struct page *p);
