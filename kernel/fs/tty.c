// Terminals as files: opening, reading, writing, polling; and the list of them.
//
// The line discipline (tty_ldisc.c) and job control (tty_jobs.c) do the
// thinking. User memory is touched between two stretches under the terminal's
// lock, by way of a small buffer. A read or write larger than that buffer is
// not atomic towards another reader or writer.

#include "kernel/errno.h"
#include "kernel/fs/random.h"
#include "kernel/fs/tty_ioctl.h"
#include "kernel/fs/tty_private.h"
#include "kernel/init/log.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/task.h"
#include "lib/set.h"
#include "lib/string.h"

#define TTYS_MAX 8
#define CHUNK 256u
#define VTIME_UNIT (100 * NSEC_PER_MSEC)
#define TTY_MODE 0620u

static struct tty *ttys[TTYS_MAX]; // filled at start-up, constant afterwards
static u32 tty_count;

// An open terminal. It is dead when the terminal was hung up since.
struct tty_file {
    struct tty *tty;
    u32 hangups;
    bool survives_hangup;
};
SLAB_CACHE(tty_file_cache, struct tty_file);

static bool hung_up(const struct tty_file *tf)
{
    return tf->hangups != READ_ONCE(tf->tty->hangups) && !tf->survives_hangup;
}

struct tty *tty_of_file(struct file *f)
{
    struct tty_file *tf = f->data;

    return hung_up(tf) ? NULL : tf->tty;
}

// --- reading ----------------------------------------------------------------

// How a read without ICANON ends (termios(3), VMIN and VTIME).
struct raw_limits {
    u32 minimum;  // bytes it waits for
    u64 timeout;  // ns, 0: none
    bool between; // the time runs between bytes, not from the start
};

static struct raw_limits raw_limits(const struct tty *t)
{
    struct raw_limits limits = {
        .minimum = t->termios.cc[VMIN],
        .timeout = t->termios.cc[VTIME] * VTIME_UNIT,
        .between = t->termios.cc[VMIN] > 0,
    };
    return limits;
}

// Waits for input, a hang-up or other modes. 0 when there is something to look
// at, -ETIMEDOUT, -ERESTARTSYS.
static int wait_readable(struct tty_file *tf, bool canonical, u64 deadline)
{
    struct tty *t = tf->tty;
    int err = wait_event(&t->read_wait,
                         ldisc_readable(t, 1) || hung_up(tf) ||
                             (bool)(READ_ONCE(t->termios.lflag) & ICANON) !=
                                 canonical,
                         WAIT_INTERRUPTIBLE, deadline);

    return err == -EINTR ? -ERESTARTSYS : err;
}

// Moves what is there, up to one chunk. Bytes or -EFAULT.
static int take_chunk(struct tty *t, struct io *io, bool *ended,
                      bool *canonical, struct raw_limits *limits)
{
    char buf[CHUNK];
    u32 flags = spin_lock_irq(&t->lock);
    size_t n = ldisc_take(t, buf, MIN(io->left, sizeof(buf)), ended);

    *canonical = t->termios.lflag & ICANON;
    *limits = raw_limits(t);
    spin_unlock_irq(&t->lock, flags);
    return n > 0 && io_to(io, buf, n) < 0 ? -EFAULT : (int)n;
}

// The deadline of a read without ICANON that has got `got` bytes, the last just
// now; 0: it ends here.
static u64 raw_deadline(const struct raw_limits *limits, u32 got, u64 start)
{
    if (got >= MAX(limits->minimum, 1u))
        return 0;
    if (!limits->between)
        return limits->timeout == 0 ? 0 : start + limits->timeout;
    if (limits->timeout == 0 || got == 0)
        return WAIT_FOREVER;
    return clock_now_ns() + limits->timeout;
}

static int tty_read(struct file *f, struct io *io, u64 *pos UNUSED)
{
    struct tty_file *tf = f->data;
    struct tty *t = tf->tty;
    u64 start = 0;
    int got = 0;
    int err = jobs_check(t, SIGTTIN);

    if (err)
        return err;
    while (io->left > 0) {
        u64 deadline = WAIT_FOREVER;
        struct raw_limits limits;
        bool ended, canonical;
        int n;

        if (hung_up(tf))
            break;
        n = take_chunk(t, io, &ended, &canonical, &limits);
        if (n < 0)
            return got > 0 ? got : n;
        got += n;
        if (ended)
            break;
        if (n > 0 && ldisc_readable(t, 1))
            continue;
        if (canonical && got > 0)
            break;
        if (!canonical) {
            if (start == 0)
                start = clock_now_ns();
            deadline = raw_deadline(&limits, got, start);
            if (deadline == 0)
                break;
        }
        if (f->flags & O_NONBLOCK)
            return got > 0 ? got : -EAGAIN;
        if (io->left == 0)
            break;
        err = wait_readable(tf, canonical, deadline);
        if (err == -ETIMEDOUT)
            break;
        if (err)
            return got > 0 ? got : err;
    }
    return got;
}

// --- writing ----------------------------------------------------------------

static int wait_writable(struct tty_file *tf)
{
    struct tty *t = tf->tty;
    int err = wait_event(&t->write_wait, ldisc_writable(t) || hung_up(tf),
                         WAIT_INTERRUPTIBLE, WAIT_FOREVER);

    return err == -EINTR ? -ERESTARTSYS : err;
}

static size_t put_out(struct tty *t, const char *text, size_t n)
{
    u32 flags = spin_lock_irq(&t->lock);
    size_t done = ldisc_output(t, text, n);

    ldisc_push(t);
    spin_unlock_irq(&t->lock, flags);
    return done;
}

// Writes all of a buffer. Adds to *done what went out; 0 or -errno.
static int write_chunk(struct file *f, const char *text, size_t n, int *done)
{
    struct tty_file *tf = f->data;
    int err;

    while (n > 0) {
        size_t put = hung_up(tf) ? 0 : put_out(tf->tty, text, n);

        *done += put;
        text += put;
        n -= put;
        if (n == 0)
            break;
        if (hung_up(tf))
            return -EIO;
        if (put > 0)
            continue;
        if (f->flags & O_NONBLOCK)
            return -EAGAIN;
        err = wait_writable(tf);
        if (err)
            return err;
    }
    return 0;
}

static int tty_write(struct file *f, struct io *io, u64 *pos UNUSED)
{
    struct tty_file *tf = f->data;
    int done = 0, err = 0;
    char buf[CHUNK];

    if (hung_up(tf))
        return -EIO;
    if (READ_ONCE(tf->tty->termios.lflag) & TOSTOP)
        err = jobs_check(tf->tty, SIGTTOU);
    while (!err && io->left > 0) {
        size_t n = MIN(io->left, sizeof(buf));

        err = io_from(io, buf, n);
        if (!err)
            err = write_chunk(f, buf, n, &done);
    }
    return done > 0 ? done : err;
}

// --- the other file operations
// ------------------------------------------------

static u32 tty_poll(struct file *f, struct poll_wait *pw)
{
    struct tty_file *tf = f->data;
    struct tty *t = tf->tty;
    u32 events = 0, minimum = 1;

    if (pw != NULL) {
        poll_register(pw, &t->read_wait);
        poll_register(pw, &t->write_wait);
    }
    if (hung_up(tf))
        return POLLIN | POLLOUT | POLLERR | POLLHUP;
    if (t->termios.cc[VMIN] > 1 && t->termios.cc[VTIME] == 0)
        minimum = t->termios.cc[VMIN];
    if (ldisc_readable(t, minimum))
        events |= POLLIN;
    if (ldisc_writable(t))
        events |= POLLOUT;
    return events;
}

static void tty_release(struct file *f)
{
    slab_free(&tty_file_cache, f->data);
}

static const struct file_ops tty_file_ops = {
    .read = tty_read,
    .write = tty_write,
    .poll = tty_poll,
    .ioctl = tty_ioctl,
    .release = tty_release,
};

int tty_attach_file(struct tty *t, struct file *file, bool survives_hangup)
{
    struct tty_file *tf = slab_alloc(&tty_file_cache);

    if (tf == NULL)
        return -ENOMEM;
    *tf = (struct tty_file){ t, READ_ONCE(t->hangups), survives_hangup };
    file->data = tf;
    file->ops = &tty_file_ops;
    return 0;
}

// --- the driver's side
// --------------------------------------------------------

void tty_input(struct tty *t, const char *text, size_t n)
{
    u32 flags = spin_lock_irq(&t->lock);

    random_stir(n > 0 ? (u8)text[0] : 0);
    for (size_t i = 0; i < n; i++) {
        int sig = ldisc_input(t, text[i]);

        if (sig == 0)
            continue;
        spin_unlock_irq(&t->lock, flags);
        jobs_signal(t, sig);
        flags = spin_lock_irq(&t->lock);
    }
    ldisc_push(t); // the echo
    ldisc_throttle(t);
    if (ldisc_readable(t, 1))
        waitq_wake_all(&t->read_wait);
    spin_unlock_irq(&t->lock, flags);
}

void tty_output_ready(struct tty *t)
{
    u32 flags = spin_lock_irq(&t->lock);

    ldisc_push(t);
    spin_unlock_irq(&t->lock, flags);
}

u32 tty_device_number(struct tty *t)
{
    return t->driver->rdev;
}

u32 tty_foreground(struct tty *t)
{
    return READ_ONCE(t->pgrp);
}

// --- devices ----------------------------------------------------------------

static int open_terminal(struct file *f)
{
    for (u32 i = 0; i < tty_count; i++) {
        struct tty *t = ttys[i];
        int err;

        if (t->driver->rdev != f->vnode->rdev)
            continue;
        err = tty_attach_file(t, f, false);
        if (!err && !(f->flags & O_NOCTTY))
            (void)jobs_acquire(t, false); // fails: not this time
        return err;
    }
    return -ENXIO;
}

// /dev/tty: the controlling terminal.
static int open_controlling(struct file *f)
{
    struct tty *t = jobs_controlling_tty();

    return t == NULL ? -ENXIO : tty_attach_file(t, f, false);
}

// /dev/console: the terminal of the first console, else the first terminal. It
// never becomes a controlling terminal by being opened, and is never hung up.
static int open_console(struct file *f)
{
    const char *name = console_name();

    for (u32 i = 0; name != NULL && i < tty_count; i++) {
        if (strcmp(ttys[i]->driver->name, name) == 0)
            return tty_attach_file(ttys[i], f, true);
    }
    return tty_count == 0 ? -ENXIO : tty_attach_file(ttys[0], f, true);
}

static const struct char_device controlling_device = {
    .name = "tty",
    .rdev = DEVICE_NUMBER(5, 0),
    .mode = 0666,
    .ops = &tty_file_ops,
    .open = open_controlling,
};
CHAR_DEVICE(controlling_device);

static const struct char_device console_device = {
    .name = "console",
    .rdev = DEVICE_NUMBER(5, 1),
    .mode = 0600,
    .ops = &tty_file_ops,
    .open = open_console,
};
CHAR_DEVICE(console_device);

struct tty *tty_create(struct tty_driver *d)
{
    struct tty *t = kzalloc(sizeof(*t));

    if (t == NULL)
        return NULL;
    t->driver = d;
    t->size = (struct winsize_k){ .rows = d->rows, .cols = d->cols };
    t->device = (struct char_device){
        .name = d->name,
        .rdev = d->rdev,
        .mode = TTY_MODE,
        .ops = &tty_file_ops,
        .open = open_terminal,
    };
    spin_init(&t->lock, "tty");
    waitq_init(&t->read_wait, "tty input");
    waitq_init(&t->write_wait, "tty output");
    ldisc_init(t);
    return t;
}

static void add_terminal(struct tty_driver *d)
{
    struct tty *t = tty_count < TTYS_MAX ? tty_create(d) : NULL;
    int err;

    if (t == NULL) {
        log_printf("tty: no room for %s\n", d->name);
        return;
    }
    ttys[tty_count++] = t;
    d->tty = t;
    err = char_device_register(&t->device);
    if (err)
        log_printf("tty: no /dev/%s: error %d\n", d->name, -err);
    if (d->start != NULL)
        d->start(d);
}

void tty_init(void)
{
    LINKER_SET_FOR_EACH(struct tty_driver, driver, tty_drivers) {
        if ((*driver)->present == NULL || (*driver)->present(*driver))
            add_terminal(*driver);
    }
}
