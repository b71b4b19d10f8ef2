// The machine's own screen: the console and terminal tty0.
//
// A program's output is shown at once in the VGA's text mode, and on a
// framebuffer up to SHOW_DELAY later, by a callout's thread: lines that have
// left the screen by then are never drawn. The log, and so a panic, is shown at
// once.
//
// `display_lock` guards the screen and the device behind it. Lock order: a
// tty's lock, then `display_lock`.
#include "arch/i386/dev/display.h"
#include "arch/clock.h"
#include "arch/i386/dev/device_lock.h"
#include "arch/i386/dev/ps2.h"
#include "kernel/base/log.h"
#include "kernel/base/tty_driver.h"
#include "kernel/time/callout.h"
#include "lib/set.h"
#include "lib/string.h"

#define SHOW_DELAY (10 * NSEC_PER_MSEC)

static struct spinlock display_lock = SPINLOCK_INIT("display");
static bool probed;
static const struct display *display; // NULL: none
static struct screen screen;
static u16 cells[DISPLAY_CELLS_KEPT];
static struct callout show_callout;

// A loader that has set a graphics mode says so: the VGA's registers may then
// show nothing.
static bool probe(void)
{
    static const struct display *const displays[] = { &framebuffer, &vga_text };
    u32 rows, cols;
    for (u32 i = 0; i < ARRAY_SIZE(displays) && !probed; i++) {
        if (!displays[i]->probe(&rows, &cols))
            continue;
        probed = true;
        screen_init(&screen, cells, ARRAY_SIZE(cells), rows, cols);
        displays[i]->show(&screen, 0, rows);
        display = displays[i];
    }
    probed = true;
    return display;
}

static void console_write(const char *text, size_t n)
{
    if (!display)
        return;
    struct device_lock_state s = device_lock(&display_lock);
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
    display->show(&screen, 0, screen.rows);
    device_unlock(&display_lock, s);
}

static const struct console console = {
    .name = "tty0",
    .rank = 100,
    .probe = probe,
    .write = console_write,
};
CONSOLE(console);

// A row at a time: interrupts are off while the lock is held.
static void show_rows(struct callout *c UNUSED)
{
    for (u32 y = 0; y < screen.rows; y++) {
        u32 flags = spin_lock_irq(&display_lock);
        display->show(&screen, y, y + 1);
        spin_unlock_irq(&display_lock, flags);
    }
}

static void show_later(void)
{
    if (display->slow && !callout_pending(&show_callout))
        callout_set(&show_callout, clock_now_ns() + SHOW_DELAY);
}

static size_t tty_write(struct tty_driver *d UNUSED, const char *text, size_t n)
{
    u32 flags = spin_lock_irq(&display_lock);
    screen_write(&screen, text, n);
    if (!display->slow)
        display->show(&screen, 0, screen.rows);
    spin_unlock_irq(&display_lock, flags);
    show_later();
    return n;
}

// Most keys are typed in the present, where nothing is to be done.
static void tty_look(struct tty_driver *d UNUSED, int steps)
{
    u32 flags = spin_lock_irq(&display_lock);
    bool moves = steps || screen.back;
    screen_look(&screen, steps);
    if (moves && !display->slow)
        display->show(&screen, 0, screen.rows);
    spin_unlock_irq(&display_lock, flags);
    if (moves)
        show_later();
}

static bool tty_present(struct tty_driver *d)
{
    if (!probe())
        return false;
    callout_init(&show_callout, show_rows, CALLOUT_THREAD);
    d->rows = (u16)screen.rows;
    d->cols = (u16)screen.cols;
    return true;
}

#define TTY_MAJOR 4u

static struct tty_driver tty0 = {
    .name = "tty0",
    .rdev = TTY_MAJOR << 8,
    .write = tty_write,
    .look = tty_look,
    .present = tty_present,
    .start = ps2_start,
};
TTY_DRIVER(tty0);
