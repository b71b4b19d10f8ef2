// A terminal under test, on a driver that stores the output.
#pragma once

#include "kernel/base/errno.h"
#include "kernel/fs/tty_private.h"
#include "kernel/mm/heap.h"
#include "lib/string.h"
#include "tests/kernel/test.h"

#define ALL ~0u

// `shown`: the output so far. `driver_room`: the bytes that the driver still
// accepts.
static struct tty_driver driver;
static struct tty *tty;
static struct file file;
static char shown[16384];
static size_t shown_len, driver_room;
static u32 throttles;

static inline size_t take_output(struct tty_driver *d UNUSED, const char *text,
                                 size_t n)
{
    size_t taken = MIN(MIN(n, driver_room), sizeof(shown) - shown_len);

    memcpy(shown + shown_len, text, taken);
    shown_len += taken;
    if (driver_room != ALL)
        driver_room -= taken;
    return taken;
}

static inline void note_throttle(struct tty_driver *d UNUSED, bool on)
{
    throttles += on ? 1 : 0x100;
}

static inline bool begin(void)
{
    driver = (struct tty_driver){ .name = "test",
                                  .rows = 25,
                                  .cols = 80,
                                  .write = take_output,
                                  .throttle = note_throttle };
    shown_len = throttles = 0;
    driver_room = ALL;
    tty = tty_create(&driver);
    expect(tty != NULL);
    if (tty == NULL)
        return false;
    memset(&file, 0, sizeof(file));
    file.flags = O_RDWR | O_NONBLOCK;
    if (tty_attach_file(tty, &file, false) == 0)
        return true;
    expect(!"room for an open file");
    kfree(tty);
    return false;
}

static inline void end(void)
{
    file.ops->release(&file);
    kfree(tty);
}

static inline void type(const char *text)
{
    tty_input(tty, text, strlen(text));
}

static inline int get(char *buf, size_t n)
{
    struct iovec_k part;
    struct io io;
    u64 pos = 0;

    io_init(&io, &part, (u32)buf, n, true);
    return file.ops->read(&file, &io, &pos);
}

static inline int say(const char *text, size_t n)
{
    struct iovec_k part;
    struct io io;
    u64 pos = 0;

    io_init(&io, &part, (u32)text, n, true);
    return file.ops->write(&file, &io, &pos);
}

// True if a read returns exactly `text` (NULL: if there is nothing to read).
static inline bool reads(const char *text)
{
    char buf[256];
    int n = get(buf, sizeof(buf));

    if (text == NULL)
        return n == -EAGAIN;
    return n == (int)strlen(text) && memcmp(buf, text, n) == 0;
}

static inline bool shows(const char *text)
{
    bool same =
        shown_len == strlen(text) && memcmp(shown, text, shown_len) == 0;

    shown_len = 0;
    return same;
}

static inline void set_modes(u32 iflag, u32 oflag, u32 lflag)
{
    u32 flags = spin_lock_irq(&tty->lock);
    struct termios_k old = tty->termios;

    tty->termios.iflag = iflag;
    tty->termios.oflag = oflag;
    tty->termios.lflag = lflag;
    ldisc_modes_changed(tty, &old);
    spin_unlock_irq(&tty->lock, flags);
}

static inline void set_raw(u8 minimum, u8 time)
{
    tty->termios.cc[VMIN] = minimum;
    tty->termios.cc[VTIME] = time;
    set_modes(0, 0, 0);
}
