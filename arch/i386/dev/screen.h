// A text screen with the control sequences of a VT100 / Linux console (ECMA-48)
// that vi, less, top and coloured listings use. Text is UTF-8; a byte that is
// not is shown as the font's character of that number.
//
// Pure code: it changes its own cells and records which rows must be redrawn.
// The owner does the locking.
#pragma once

#include "lib/utf8.h"

#define SCREEN_ROWS_MAX 128u
#define SCREEN_PARAMETERS 8

// A cell is the VGA's: character | attribute << 8.
struct screen {
    u32 rows, cols;
    u16 *cells;
    u8 line[SCREEN_ROWS_MAX]; // each row's index in `cells`

    // Read by the owner, which resets them once the rows are drawn:
    bool dirty[SCREEN_ROWS_MAX]; // changed rows; to be applied after scrolling
    u32 scrolled;                // rows by which the whole screen has moved up

    u32 x, y;
    u32 top, bottom;   // of the scroll region, both inclusive
    bool wrap_pending; // the last column is written: the next character wraps
    bool no_wrap, hidden_cursor;
    u8 foreground, background; // VGA colours
    bool bold, reverse;
    struct {
        u32 x, y;
        u8 foreground, background;
        bool bold, reverse;
    } saved;

    enum { TEXT, ESCAPE, ESCAPE_SKIP_ONE, CONTROL, STRING } state;
    u32 parameters[SCREEN_PARAMETERS];
    u32 parameter_count;
    char prefix; // '?' and similar; ' ' if not understood

    u8 held[UTF8_MAX]; // the bytes so far of a character of several
    u32 held_count;
};

// Takes rows * cols cells; 1 <= rows <= SCREEN_ROWS_MAX, 1 <= cols.
void screen_init(struct screen *s, u16 *cells, u32 rows, u32 cols);
void screen_write(struct screen *s, const char *text, size_t n);
static inline const u16 *screen_row(const struct screen *s, u32 y)
{
    return s->cells + s->line[y] * s->cols;
}
