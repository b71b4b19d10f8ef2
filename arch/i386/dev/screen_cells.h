// Operations on cells and cursor, for the control sequences (screen.c).
//
// Columns and rows must be within the screen, and top <= bottom in a region;
// counts may be any number and are clipped.
#pragma once

#include "arch/i386/dev/screen.h"

#define TAB_WIDTH 8u
#define WHITE 7
#define BLACK 0

void cells_erase(struct screen *s, u32 y, u32 from, u32 to); // [from, to)
void cells_erase_rows(struct screen *s, u32 from, u32 to);   // [from, to)
void cells_scroll_up(struct screen *s, u32 top, u32 bottom, u32 n);
void cells_scroll_down(struct screen *s, u32 top, u32 bottom, u32 n);
void cells_insert(struct screen *s, u32 n); // inserts blanks at the cursor
void cells_delete(struct screen *s, u32 n);
// Writes a character at the cursor, and advances it.
void cells_put(struct screen *s, u8 c);

void cursor_move_to(struct screen *s, u32 x, u32 y); // clipped to the screen
void cursor_move_up(struct screen *s, u32 n);
void cursor_move_left(struct screen *s, u32 n);
void cursor_line_feed(struct screen *s); // scrolls at the region's bottom
void cursor_reverse_line_feed(struct screen *s); // scrolls at its top
void cursor_save(struct screen *s);              // and colours
void cursor_restore(struct screen *s);
