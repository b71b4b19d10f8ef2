// The terminal: keys one by one, and a page on the screen.
//
// Only CUP, ED, EL and SGR are used, which the VGA console and every serial
// terminal know; what has not changed is not sent again.
#pragma once

#include "page.h"

// Takes the terminal over: no echo, no lines. -1 and errno: it is none, or
// memory is out.
int screen_enter(void);
// Gives the terminal back as it was, cursor below the page. May be called at
// any time, also by a signal handler; only the first call does something.
void screen_leave(void);
// Output that ^S has stopped goes on, so that nothing waits for it for ever.
// For signal handlers too.
void screen_go_on(void);
// Takes the terminal's size, and draws everything anew the next time. -1: not
// enough memory.
int screen_resize(void);
// The page to draw on, as large as the screen, cleared. It belongs to screen.c.
struct page *screen_page(void);
// Shows that page; the cursor stands behind the text of row `cursor_row`.
// -1 and errno: the terminal is gone.
int screen_show(unsigned cursor_row);
