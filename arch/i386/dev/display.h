// What shows the screen of terminal tty0: the VGA's text mode, or a
// framebuffer.
//
// The first call of `probe` is before arch_init_memory. All are called with
// display.c's lock held, or in a panic.
#pragma once

#include "arch/i386/dev/screen.h"

struct display {
    // True: there is one; its size is in *rows and *cols, at most
    // DISPLAY_CELLS_MAX cells.
    bool (*probe)(u32 *rows, u32 *cols);
    // Shows what has changed, and resets the screen's marks: of the rows
    // [from, to) if it is slow, or else of all.
    void (*show)(struct screen *s, u32 from, u32 to);
    bool slow; // what programs write is shown later
};
#define DISPLAY_CELLS_MAX 18000u
// With the lines that have left the screen: 800 of 80 cells, 266 of 240.
#define DISPLAY_CELLS_KEPT 64000u

extern const struct display vga_text, framebuffer;

// Called by arch_init_memory: maps the framebuffer on the final page tables
// before they are loaded, and moves there after it.
void framebuffer_map(void);
void framebuffer_move(void);
