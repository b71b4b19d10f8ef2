// A terminal's output: output modes (termios(3), OPOST) and the output ring,
// which writers and echo fill and the driver empties.
//
// Everything here runs with the terminal's lock held and interrupts off.
// Writers leave room for echo in the ring; echo that does not fit is counted.

#include "kernel/fs/tty_private.h"

#define ECHO_RESERVE 512u // room in the output ring that writers leave

static u32 output_room(const struct tty *t)
{
    return TTY_OUTPUT_SIZE - (t->out_head - t->out_tail);
}

bool tty_writable(const struct tty *t)
{
    return output_room(t) > ECHO_RESERVE;
}

static void put(struct tty *t, u8 c)
{
    spin_assert_held(&t->lock);
    t->out[t->out_head++ % TTY_OUTPUT_SIZE] = c;
}

static void put_spaces(struct tty *t, u32 n)
{
    while (n-- > 0)
        put(t, ' ');
}

// Adds one character, processed by OPOST; the caller guarantees TTY_TAB_WIDTH
// free places.
static void put_processed(struct tty *t, u8 c)
{
    spin_assert_held(&t->lock);
    u32 modes = t->termios.oflag;
    u32 to_tab = TTY_TAB_WIDTH - t->column % TTY_TAB_WIDTH;

    switch (c) {
    case '\n':
        if (modes & ONLCR)
            put(t, '\r');
        if (modes & (ONLCR | ONLRET))
            t->column = 0;
        break;
    case '\r':
        if ((modes & ONOCR) && t->column == 0)
            return;
        if (modes & OCRNL)
            c = '\n';
        if (!(modes & OCRNL) || (modes & ONLRET))
            t->column = 0;
        break;
    case '\t':
        t->column += to_tab;
        if ((modes & TABDLY) == XTABS) {
            put_spaces(t, to_tab);
            return;
        }
        break;
    case '\b':
        if (t->column > 0)
            t->column--;
        break;
    default:
        if (!tty_is_control(c) && !tty_continues_utf8(t, c))
            t->column++;
    }
    put(t, c);
}

size_t tty_output(struct tty *t, const char *text, size_t n)
{
    spin_assert_held(&t->lock);
    bool process = t->termios.oflag & OPOST;
    size_t done;

    for (done = 0; done < n && output_room(t) > ECHO_RESERVE; done++) {
        if (process)
            put_processed(t, text[done]);
        else
            put(t, text[done]);
    }
    return done;
}

void tty_output_push(struct tty *t)
{
    spin_assert_held(&t->lock);
    struct tty_driver *d = t->driver;
    u32 before = t->out_tail;

    while (!t->stopped && t->out_head != t->out_tail) {
        u32 at = t->out_tail % TTY_OUTPUT_SIZE;
        u32 n = MIN(t->out_head - t->out_tail, TTY_OUTPUT_SIZE - at);
        size_t taken = d->write(d, (const char *)t->out + at, n);
        t->out_tail += taken;
        if (taken < n)
            break;
    }
    // Wakes writers only when half of the ring is free, so that each has enough
    // room.
    if (t->out_tail != before && output_room(t) >= TTY_OUTPUT_SIZE / 2)
        waitq_wake_all(&t->write_wait);
}

void tty_output_stop(struct tty *t, bool stop)
{
    spin_assert_held(&t->lock);
    t->stopped = stop;
    if (!stop)
        tty_output_push(t);
}

void tty_output_flush(struct tty *t)
{
    spin_assert_held(&t->lock);
    t->out_tail = t->out_head;
    waitq_wake_all(&t->write_wait);
}

void tty_echo(struct tty *t, u8 c)
{
    spin_assert_held(&t->lock);
    if (output_room(t) < TTY_TAB_WIDTH)
        tty_output_push(t);
    if (output_room(t) < TTY_TAB_WIDTH)
        t->echo_lost++;
    else if (t->termios.oflag & OPOST)
        put_processed(t, c);
    else
        put(t, c);
}
