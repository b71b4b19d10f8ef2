// Terminals as open files: reading, writing, polling; and the driver's
// interface.
//
// The line discipline is in tty_ldisc.c, job control in tty_jobs.c. User memory
// is accessed only with the terminal's lock released, through a small buffer. A
// read or write larger than that buffer is not atomic with respect to other
// readers or writers.
// not atomic towards another reader or writer.

#include "arch/clock.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/random.h"
#include "kernel/fs/tty_private.h"
#include "kernel/mm/heap.h"
#include "kernel/task/signal.h"

#define CHUNK 256u
#define VTIME_UNIT (100 * NSEC_PER_MSEC)

// An open terminal. It is dead if the terminal was hung up after the open.
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
    bool between; // the timer runs between bytes, not from the start
};

static struct raw_limits raw_limits(const struct tty *t)
{
    spin_assert_held(&t->lock);
    struct raw_limits limits = {
        .minimum = t->termios.cc[VMIN],
        .timeout = t->termios.cc[VTIME] * VTIME_UNIT,
        .between = t->termios.cc[VMIN] > 0,
    };
    return limits;
}

// The sleepers' condition: there is input, or canonical mode has changed.
static bool may_read(struct tty *t, bool canonical)
{
    u32 flags = spin_lock_irq(&t->lock);
    bool may =
        ldisc_readable(t, 1) || (bool)(t->termios.lflag & ICANON) != canonical;
    spin_unlock_irq(&t->lock, flags);
    return may;
}

static bool may_write(struct tty *t)
{
    u32 flags = spin_lock_irq(&t->lock);
    bool may = tty_writable(t);
    spin_unlock_irq(&t->lock, flags);
    return may;
}

// Waits for input, a hang-up or a mode change. 0 when there may be one,
// -ETIMEDOUT, -ERESTARTSYS.
static int wait_readable(struct tty_file *tf, bool canonical, u64 deadline)
{
    assert_may_sleep();
    struct tty *t = tf->tty;
    int err = wait_event(&t->read_wait, may_read(t, canonical) || hung_up(tf),
                         WAIT_INTERRUPTIBLE, deadline);

    return err == -EINTR ? -ERESTARTSYS : err;
}

// Moves the available input, up to one chunk. Bytes or -EFAULT.
static int take_chunk(struct tty *t, struct io *io, bool *ended,
                      bool *canonical, struct raw_limits *limits)
{
    assert_checked(io->left);
    char buf[CHUNK];
    u32 flags = spin_lock_irq(&t->lock);
    size_t n = ldisc_take(t, buf, MIN(io->left, sizeof(buf)), ended);

    *canonical = t->termios.lflag & ICANON;
    *limits = raw_limits(t);
    spin_unlock_irq(&t->lock, flags);
    return n > 0 && io_to(io, buf, n) < 0 ? -EFAULT : (int)n;
}

// The deadline of a read without ICANON that has got `got` bytes, the last just
// now; 0: the read ends here.
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
        if (n > 0 && may_read(t, canonical))
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
        if (READ_ONCE(f->flags) & O_NONBLOCK)
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
    assert_may_sleep();
    struct tty *t = tf->tty;
    int err = wait_event(&t->write_wait, may_write(t) || hung_up(tf),
                         WAIT_INTERRUPTIBLE, WAIT_FOREVER);

    return err == -EINTR ? -ERESTARTSYS : err;
}

static size_t put_out(struct tty *t, const char *text, size_t n)
{
    u32 flags = spin_lock_irq(&t->lock);
    size_t done = tty_output(t, text, n);
    tty_output_push(t);
    spin_unlock_irq(&t->lock, flags);
    return done;
}

// Writes all of a buffer. Adds the number of written bytes to *done; 0 or
// -errno.
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
        if (READ_ONCE(f->flags) & O_NONBLOCK)
            return -EAGAIN;
        err = wait_writable(tf);
        if (err)
            return err;
    }
    return 0;
}

static bool stops_background(struct tty *t)
{
    u32 flags = spin_lock_irq(&t->lock);
    bool stops = t->termios.lflag & TOSTOP;
    spin_unlock_irq(&t->lock, flags);
    return stops;
}

static int tty_write(struct file *f, struct io *io, u64 *pos UNUSED)
{
    struct tty_file *tf = f->data;
    int done = 0, err = 0;
    char buf[CHUNK];
    if (hung_up(tf))
        return -EIO;
    if (stops_background(tf->tty))
        err = jobs_check(tf->tty, SIGTTOU);
    while (!err && io->left > 0) {
        size_t n = MIN(io->left, sizeof(buf));
        err = io_from(io, buf, n);
        if (!err)
            err = write_chunk(f, buf, n, &done);
    }
    return done > 0 ? done : err;
}

// --- the other file operations ----------------------------------------------

static u32 tty_poll(struct file *f, struct poll_wait *pw)
{
    struct tty_file *tf = f->data;
    struct tty *t = tf->tty;
    u32 events = 0, minimum = 1, flags;
    if (pw) {
        poll_register(pw, &t->read_wait);
        poll_register(pw, &t->write_wait);
    }
    if (hung_up(tf))
        return POLLIN | POLLOUT | POLLERR | POLLHUP;
    flags = spin_lock_irq(&t->lock);
    if (t->termios.cc[VMIN] > 1 && t->termios.cc[VTIME] == 0)
        minimum = t->termios.cc[VMIN];
    if (ldisc_readable(t, minimum))
        events |= POLLIN;
    if (tty_writable(t))
        events |= POLLOUT;
    spin_unlock_irq(&t->lock, flags);
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
    assert(!file->data);
    struct tty_file *tf = slab_alloc(&tty_file_cache);

    if (!tf)
        return -ENOMEM;
    *tf = (struct tty_file){ t, READ_ONCE(t->hangups), survives_hangup };
    file->data = tf;
    file->ops = &tty_file_ops;
    return 0;
}

// --- the driver's interface -------------------------------------------------

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
    tty_output_push(t); // the echo
    ldisc_throttle(t);
    if (ldisc_readable(t, 1))
        waitq_wake_all(&t->read_wait);
    spin_unlock_irq(&t->lock, flags);
}

void tty_output_ready(struct tty *t)
{
    u32 flags = spin_lock_irq(&t->lock);
    tty_output_push(t);
    spin_unlock_irq(&t->lock, flags);
}
