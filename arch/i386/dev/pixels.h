// Text cells drawn as pixels into a linear framebuffer.
//
// Pure code: it writes only within the rows that the framebuffer has, 32 bits
// at a time, and never reads it: reading video memory is slow. The owner does
// the locking.
#pragma once

#include "arch/boot.h"
#include "arch/i386/dev/screen.h"

#define GLYPH_WIDTH 8u
#define GLYPH_HEIGHT 16u
#define PIXELS_SCALE_MAX 8u
// 1920x1200 at 8x16. Larger framebuffers get larger characters.
#define PIXELS_CELLS_MAX 18000u

// A row of 24-bit pixels may begin anywhere.
typedef u32 __attribute__((aligned(1), may_alias)) pixel_word;

struct pixels {
    u8 *base; // where it is mapped; may change at any time. NULL: draws nothing
    u32 pitch, width;
    u32 height; // rows of pixels that are mapped
    u32 bytes;  // of a pixel
    u32 scale;  // a dot of a glyph is scale * scale pixels
    u32 rows, cols;
    const u8 (*font)[GLYPH_HEIGHT]; // 256 glyphs; bit 7 is the leftmost dot
    u32 colours[16];                // of the VGA's palette
    u32 cursor;                     // the cell that shows it; or NO_CURSOR
    // The words that four dots become, for each value of the four, in the
    // colours of `attribute`.
    pixel_word patterns[16][4 * PIXELS_SCALE_MAX];
    u32 attribute;
    u16 shown[PIXELS_CELLS_MAX]; // the cells as they are drawn
};
#define NO_CURSOR (~0u)

// Chooses the size of the characters, and so the numbers of rows and columns.
// False: the framebuffer is too small for text. `height` is at most that of
// `f`; `base` is left to the caller.
bool pixels_init(struct pixels *p, const struct boot_framebuffer *f, u32 height,
                 const u8 (*font)[GLYPH_HEIGHT]);
// Fills the framebuffer with black (of 24 bits a pixel perhaps not the last
// column).
void pixels_clear(struct pixels *p);
// Draws what has changed in the rows [from, to) of a screen of p->rows by
// p->cols, and resets their marks; with the last row the cursor, too.
void pixels_show(struct pixels *p, struct screen *s, u32 from, u32 to);
