// The VGA's text mode, 80 by 25, as the display. Scrolling the whole screen
// moves the start address through the 32 KiB of text memory, so that only the
// new row is written: emulated video memory is slow.
#include "arch/i386/dev/display.h"
#include "arch/i386/dev/port.h"
#include "arch/mmu.h"
#include "lib/string.h"

#define VGA_ROWS 25u
#define VGA_COLS 80u
#define TEXT_MEMORY 0xb8000u
#define TEXT_ROWS (KIB(32) / sizeof(u16) / VGA_COLS)

#define MISC_OUTPUT_READ 0x3cc
#define MISC_COLOUR 0x01 // the CRTC's ports start at 0x3d4
#define GRAPHICS_INDEX 0x3ce
#define GRAPHICS_DATA 0x3cf
#define GRAPHICS_MISC 6
#define GRAPHICS_MODE 0x01
#define CRTC_INDEX 0x3d4
#define CRTC_DATA 0x3d5
enum {
    CRTC_CURSOR_START = 0x0a,
    CRTC_CURSOR_END = 0x0b,
    CRTC_START_HIGH = 0x0c,
    CRTC_START_LOW = 0x0d,
    CRTC_CURSOR_HIGH = 0x0e,
    CRTC_CURSOR_LOW = 0x0f,
};
#define CURSOR_OFF 0x20
#define CURSOR_FIRST_LINE 13 // an underline in characters 16 lines high
#define CURSOR_LAST_LINE 14

static u32 origin; // the row of text memory at the top of the screen
static bool cursor_hidden;

static u16 *text_row(u32 y)
{
    return (u16 *)phys_to_virt(TEXT_MEMORY) + (origin + y) * VGA_COLS;
}

static u8 crtc_read(u8 reg)
{
    out8(CRTC_INDEX, reg);
    return in8(CRTC_DATA);
}

static void crtc_write(u8 reg, u8 value)
{
    out8(CRTC_INDEX, reg);
    out8(CRTC_DATA, value);
}

// If there is a CRTC, the cursor's low byte can be written and read back. Some
// loaders, and UEFI, set a graphics mode.
static bool text_mode_found(void)
{
    if (!(in8(MISC_OUTPUT_READ) & MISC_COLOUR))
        return false;
    u8 old = crtc_read(CRTC_CURSOR_LOW);
    u8 other = old ^ 0xff;
    crtc_write(CRTC_CURSOR_LOW, other);
    bool found = crtc_read(CRTC_CURSOR_LOW) == other;
    crtc_write(CRTC_CURSOR_LOW, old);
    out8(GRAPHICS_INDEX, GRAPHICS_MISC);
    return found && !(in8(GRAPHICS_DATA) & GRAPHICS_MODE);
}

static void show_cursor(const struct screen *s)
{
    u32 at = (origin + s->y) * VGA_COLS + s->x;
    crtc_write(CRTC_CURSOR_HIGH, (u8)(at >> 8));
    crtc_write(CRTC_CURSOR_LOW, (u8)at);
    if (cursor_hidden == !screen_cursor_shown(s))
        return;
    cursor_hidden = !cursor_hidden;
    crtc_write(CRTC_CURSOR_START,
               CURSOR_FIRST_LINE | (cursor_hidden ? CURSOR_OFF : 0));
}

static void show_origin(void)
{
    u32 at = origin * VGA_COLS;
    crtc_write(CRTC_START_HIGH, (u8)(at >> 8));
    crtc_write(CRTC_START_LOW, (u8)at);
}

static void show(struct screen *s, u32 from UNUSED, u32 to UNUSED)
{
    bool moved = s->scrolled > 0;
    origin += s->scrolled;
    s->scrolled = 0;
    if (origin + VGA_ROWS > TEXT_ROWS) {
        origin = 0;
        memset(s->dirty, true, VGA_ROWS);
    }
    for (u32 y = 0; y < VGA_ROWS; y++) {
        if (s->dirty[y])
            memcpy(text_row(y), screen_row(s, y), VGA_COLS * sizeof(u16));
    }
    memset(s->dirty, false, VGA_ROWS);
    if (moved)
        show_origin();
    show_cursor(s);
}

static bool probe(u32 *rows, u32 *cols)
{
    if (!text_mode_found())
        return false;
    crtc_write(CRTC_CURSOR_START, CURSOR_FIRST_LINE);
    crtc_write(CRTC_CURSOR_END, CURSOR_LAST_LINE);
    show_origin();
    *rows = VGA_ROWS;
    *cols = VGA_COLS;
    return true;
}

const struct display vga_text = {
    .probe = probe,
    .show = show,
};
