// A text screen with the control sequences of a VT100 / Linux console (ECMA-48)
// that vi, less, top and coloured listings use. Text is UTF-8; a byte that is
// not is shown as the font's character of that number.
//
// The rows that leave the top of the whole screen are kept, and can be looked
// at again. No cells are copied for that: the screen moves along a list of all
// lines, whose oldest line becomes the new row.
//
// Pure code: it changes its own cells and records which rows must be redrawn.
// The owner does the locking.
#pragma once

#include "lib/utf8.h"

#define SCREEN_ROWS_MAX 128u
#define SCREEN_LINES_MAX 800u // with those kept
#define SCREEN_PARAMETERS 8

// A cell is the VGA's: character | attribute << 8.
struct screen {
    u32 rows, cols;
    u16 *cells;
    u32 lines; // that `cells` has
    // Lines by their index in `cells`: a list of all, which ends with the rows
    // of the screen. It moves up in the array, and back when that ends.
    u16 line[2 * SCREEN_LINES_MAX];
    u32 first;   // the top row's place
    u32 history; // lines kept before it
    u32 back;    // lines by which an earlier part is shown; 0: the present

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

// 1 <= rows <= SCREEN_ROWS_MAX, 1 <= cols. Takes `n` cells, rows * cols or
// more; those beyond keep earlier lines, up to SCREEN_LINES_MAX - rows.
void screen_init(struct screen *s, u16 *cells, size_t n, u32 rows, u32 cols);
// Returns to the present, and writes.
void screen_write(struct screen *s, const char *text, size_t n);
// Shows the part half a screen earlier (steps < 0) or later for each step, as
// far as there is one. 0: returns to the present.
void screen_look(struct screen *s, int steps);

// What is shown in row `y`.
static inline const u16 *screen_row(const struct screen *s, u32 y)
{
    return s->cells + s->line[s->first - s->back + y] * s->cols;
}
static inline bool screen_cursor_shown(const struct screen *s)
{
    return !s->hidden_cursor && !s->back;
}
