// The VGA's text mode, 80 by 25: the console and terminal tty0.
//
// `vga_lock` guards the screen and the registers. Lock order: a tty's lock,
// then `vga_lock`. Scrolling the whole screen moves the start address through
// the 32 KiB of text memory, so that only the new row is written: emulated
// video memory is slow.
#include "arch/i386/dev/device_lock.h"
#include "arch/i386/dev/port.h"
#include "arch/i386/dev/ps2.h"
#include "arch/i386/dev/screen.h"
#include "arch/mmu.h"
#include "kernel/base/log.h"
#include "kernel/base/tty_driver.h"
#include "lib/set.h"
#include "lib/string.h"

#define TEXT_MEMORY 0xb8000u
#define TEXT_ROWS (KIB(32) / sizeof(u16) / SCREEN_COLS)

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

static struct spinlock vga_lock = SPINLOCK_INIT("vga");
static enum { UNKNOWN, ABSENT, PRESENT } state;
static struct screen screen;
static u32 origin; // the row of text memory at the top of the screen
static bool cursor_hidden;

static u16 *text_row(u32 y)
{
    return (u16 *)phys_to_virt(TEXT_MEMORY) + (origin + y) * SCREEN_COLS;
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

static void show_cursor(void)
{
    u32 at = (origin + screen.y) * SCREEN_COLS + screen.x;
    crtc_write(CRTC_CURSOR_HIGH, (u8)(at >> 8));
    crtc_write(CRTC_CURSOR_LOW, (u8)at);
    if (cursor_hidden == screen.hidden_cursor)
        return;
    cursor_hidden = screen.hidden_cursor;
    crtc_write(CRTC_CURSOR_START,
               CURSOR_FIRST_LINE | (cursor_hidden ? CURSOR_OFF : 0));
}

static void show_origin(void)
{
    u32 at = origin * SCREEN_COLS;
    crtc_write(CRTC_START_HIGH, (u8)(at >> 8));
    crtc_write(CRTC_START_LOW, (u8)at);
}

static void show(void)
{
    bool moved = screen.scrolled > 0;
    origin += screen.scrolled;
    screen.scrolled = 0;
    if (origin + SCREEN_ROWS > TEXT_ROWS) {
        origin = 0;
        screen.dirty = ~0u;
    }
    for (u32 y = 0; y < SCREEN_ROWS; y++) {
        if (screen.dirty & 1u << y)
            memcpy(text_row(y), screen_row(&screen, y),
                   SCREEN_COLS * sizeof(u16));
    }
    screen.dirty = 0;
    if (moved)
        show_origin();
    show_cursor();
}

static bool probe(void)
{
    if (state == UNKNOWN) {
        state = text_mode_found() ? PRESENT : ABSENT;
        if (state == PRESENT) {
            screen_init(&screen);
            crtc_write(CRTC_CURSOR_START, CURSOR_FIRST_LINE);
            crtc_write(CRTC_CURSOR_END, CURSOR_LAST_LINE);
            show_origin();
            show();
        }
    }
    return state == PRESENT;
}

static void console_write(const char *text, size_t n)
{
    if (state != PRESENT)
        return;
    struct device_lock_state s = device_lock(&vga_lock);
    while (n > 0) {
        const char *end = memchr(text, '\n', n);
        size_t line = end ? (size_t)(end - text) : n;
        screen_write(&screen, text, line);
        if (end) {
            screen_write(&screen, "\r\n", 2);
            line++;
        }
        text += line;
        n -= line;
    }
    show();
    device_unlock(&vga_lock, s);
}

static const struct console console = {
    .name = "tty0",
    .rank = 100,
    .probe = probe,
    .write = console_write,
};
CONSOLE(console);

static size_t vga_write(struct tty_driver *d UNUSED, const char *text, size_t n)
{
    u32 flags = spin_lock_irq(&vga_lock);
    screen_write(&screen, text, n);
    show();
    spin_unlock_irq(&vga_lock, flags);
    return n;
}

static bool vga_present(struct tty_driver *d UNUSED)
{
    return probe();
}

#define TTY_MAJOR 4u

static struct tty_driver tty0 = {
    .name = "tty0",
    .rdev = TTY_MAJOR << 8,
    .rows = SCREEN_ROWS,
    .cols = SCREEN_COLS,
    .write = vga_write,
    .present = vga_present,
    .start = keyboard_start,
};
TTY_DRIVER(tty0);
