// A text screen that understands the control sequences of a VT100 / Linux
// console (ECMA-48): what vi, less, top and colourful listings send.
//
// Pure: it changes its own cells and says which rows are to be shown anew. Not
// locked; the owner does that.
#pragma once

#include "lib/types.h"

#define SCREEN_ROWS 25u
#define SCREEN_COLS 80u
#define SCREEN_PARAMETERS 8
_Static_assert(SCREEN_ROWS <= 32, "screen.dirty has a bit for each row");

// A cell is the VGA's: character | attribute << 8.
struct screen {
    u16 cells[SCREEN_ROWS][SCREEN_COLS];
    u8 line[SCREEN_ROWS]; // which element of `cells` is shown in a row

    // For the owner, who sets them to 0 when they are shown:
    u32 dirty;    // rows that changed, by bit; after scrolling
    u32 scrolled; // rows that the whole screen moved up

    u32 x, y;
    u32 top, bottom;   // of the scroll region, both inclusive
    bool wrap_pending; // the last column is written; the next one wraps
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
    char prefix; // '?' and its kin; ' ' for what is not understood
};

void screen_init(struct screen *s);
void screen_write(struct screen *s, const char *text, size_t n);
static inline const u16 *screen_row(const struct screen *s, u32 y)
{
    return s->cells[s->line[y]];
}
