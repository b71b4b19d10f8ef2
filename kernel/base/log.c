// The kernel log: a ring of text, and the consoles that show it.
//
// log_lock (interrupt-disabling) guards the ring and the order of lines on the
// consoles. A panic writes without it.

#include "kernel/base/log.h"

#include "arch/clock.h"
#include "kernel/base/cmdline.h"
#include "kernel/base/raw_lock.h"
#include "lib/format.h"
#include "lib/string.h"

#define LOG_SIZE KIB(64)
#define TIME_MAX 24
#define LINE_MAX 512
#define CONSOLES_MAX 4

static struct raw_lock log_lock;
static char ring[LOG_SIZE];
static u32 ring_end; // bytes ever written; the newest is before it
static const struct console *selected[CONSOLES_MAX];
static u32 selected_count;

KERNEL_ARG(console,
           "console=NAME: ttyS0-ttyS3[,RATE], a port as 0x3e8[,RATE], spcr, or "
           "tty0, for the log and /dev/console");
KERNEL_ARG(quiet, "quiet: the log is kept for dmesg but not shown");

void console_write_raw(const char *text, size_t n)
{
    for (u32 i = 0; i < selected_count; i++)
        selected[i]->write(text, n);
}

void console_printf(const char *fmt, ...)
{
    char line[256];
    va_list args;
    va_start(args, fmt);
    int n = format_va(line, sizeof(line), fmt, args);
    va_end(args);
    console_write_raw(line, MIN((size_t)n, sizeof(line) - 1));
}

const char *console_name(void)
{
    return selected_count ? selected[0]->name : "ttyS0";
}

const char *console_argument(void)
{
    return arg_console.present ? arg_console.value : NULL;
}

bool console_wanted(const char *name)
{
    return name && arg_console.present && !strcmp(arg_console.value, name);
}

static bool is_wanted(const struct console *c)
{
    return console_wanted(c->name) || console_wanted(c->alias) ||
           (arg_console.present && c->named && c->named());
}

// By an alias: it may be found later, and says itself if it is not.
static bool may_come(void)
{
    LINKER_SET_FOR_EACH(const struct console, c, consoles) {
        if (console_wanted((*c)->alias))
            return true;
    }
    return false;
}

static const struct console *best_console(void)
{
    const struct console *best = NULL;
    LINKER_SET_FOR_EACH(const struct console, c, consoles) {
        if (!(*c)->probe())
            continue;
        if (is_wanted(*c))
            return *c;
        if (!best || (*c)->rank > best->rank)
            best = *c;
    }
    return best;
}

// The chosen console first, then every other present one, so that messages are
// seen on any of them.
void console_init(void)
{
    const struct console *best = best_console();
    if (!best)
        return;
    u32 n = 0;
    selected[n++] = best;
    LINKER_SET_FOR_EACH(const struct console, c, consoles) {
        if (*c != best && n < CONSOLES_MAX && (*c)->probe())
            selected[n++] = *c;
    }
    selected_count = n;
    if (arg_console.present && !is_wanted(best) && !may_come())
        log_printf("console=%s: no such console, using %s\n", arg_console.value,
                   best->name);
}

void console_show_log(const struct console *c)
{
    u32 flags = raw_lock(&log_lock);
    u32 have = MIN(ring_end, LOG_SIZE), at = (ring_end - have) % LOG_SIZE;
    u32 first = MIN(have, LOG_SIZE - at);
    if (!arg_quiet.present) {
        c->write(ring + at, first);
        c->write(ring, have - first);
    }
    raw_unlock(&log_lock, flags);
}

static void append(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ring[ring_end++ % LOG_SIZE] = text[i];
}

static void put(const char *text, int n)
{
    append(text, (size_t)n);
    if (!arg_quiet.present)
        console_write_raw(text, (size_t)n);
}

void log_printf(const char *fmt, ...)
{
    char line[LINE_MAX], time[TIME_MAX];
    va_list args;
    va_start(args, fmt);
    int n = format_va(line, sizeof(line), fmt, args);
    va_end(args);
    if (n >= LINE_MAX) {
        n = LINE_MAX - 1;
        line[n - 1] = '\n';
    }
    u32 flags = raw_lock(&log_lock);
    u64 us = clock_now_ns() / NSEC_PER_USEC; // under the lock, so that times
                                             // are in order
    put(time, format(time, sizeof(time), "[%5u.%06u] ", (u32)(us / 1000000),
                     (u32)(us % 1000000)));
    put(line, n);
    raw_unlock(&log_lock, flags);
}

size_t log_read(char *buf, size_t size)
{
    u32 flags = raw_lock(&log_lock);
    u32 have = MIN(ring_end, LOG_SIZE);
    u32 n = (u32)MIN((size_t)have, size);
    for (u32 i = 0; i < n; i++)
        buf[i] = ring[(ring_end - n + i) % LOG_SIZE];
    raw_unlock(&log_lock, flags);
    return n;
}
