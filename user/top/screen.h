// The terminal: single keys as input, and a page on the screen.
//
// Only CUP, ED, EL and SGR are used, which the VGA console and every serial
// terminal support. Unchanged lines are not sent again.
#pragma once

#include "page.h"

// Switches the terminal to single keys without echo. Returns -1 and sets errno
// if it is not a terminal, or when out of memory.
int screen_enter(void);
// Restores the terminal, with the cursor below the page. May be called at any
// time and is async-signal-safe. Only the first call has an effect.
void screen_leave(void);
// Resumes output that ^S has stopped, so that no write blocks for ever.
// Async-signal-safe.
void screen_go_on(void);
// Reads the terminal's size, and makes the next screen_show draw everything.
// Returns -1 when out of memory.
int screen_resize(void);
// Returns the page to draw on, cleared, as large as the screen. It is owned by
// screen.c.
struct page *screen_page(void);
// Shows that page, with the cursor after the text of row `cursor_row`. Returns
// -1 and sets errno if the terminal was closed.
int screen_show(unsigned cursor_row);
