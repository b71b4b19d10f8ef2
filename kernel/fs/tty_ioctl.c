// A terminal's ioctls (tty_ioctl(4)): modes, size, flow, queues, ownership.
//
// Arguments are copied before the terminal's lock is taken, or after its
// release.

#include "kernel/fs/tty_private.h"

#include "kernel/base/errno.h"
#include "kernel/task/signal.h"
#include "kernel/task/task.h"
#include "lib/string.h"

#define TCGETS 0x5401u
#define TCSETS 0x5402u
#define TCSETSW 0x5403u
#define TCSETSF 0x5404u
#define TCSBRK 0x5409u
#define TCXONC 0x540au
#define TCFLSH 0x540bu
#define TIOCSCTTY 0x540eu
#define TIOCGPGRP 0x540fu
#define TIOCSPGRP 0x5410u
#define TIOCOUTQ 0x5411u
#define TIOCSTI 0x5412u
#define TIOCGWINSZ 0x5413u
#define TIOCSWINSZ 0x5414u
#define FIONREAD 0x541bu
#define TIOCNOTTY 0x5422u
#define TCSBRKP 0x5425u
#define TIOCGSID 0x5429u

enum { TCOOFF, TCOON, TCIOFF, TCION };  // arguments of TCXONC
enum { TCIFLUSH, TCOFLUSH, TCIOFLUSH }; // arguments of TCFLSH

static int get_modes(struct tty *t, u32 arg)
{
    u32 flags = spin_lock_irq(&t->lock);
    struct termios_k modes = t->termios;
    spin_unlock_irq(&t->lock, flags);
    return copy_to_user(arg, &modes, sizeof(modes));
}

static bool output_is_out(struct tty *t)
{
    u32 flags = spin_lock_irq(&t->lock);
    bool out = t->out_head == t->out_tail;
    spin_unlock_irq(&t->lock, flags);
    return out;
}

// Waits until the driver has taken all output, or the terminal is hung up.
static int drain(struct file *f, struct tty *t)
{
    int err = wait_event(&t->write_wait, output_is_out(t) || !tty_of_file(f),
                         WAIT_INTERRUPTIBLE, WAIT_FOREVER);
    return err == -EINTR ? -ERESTARTSYS : err;
}

static int set_modes(struct file *f, struct tty *t, u32 cmd, u32 arg)
{
    struct termios_k modes, old;
    u32 flags;
    int err = jobs_check(t, SIGTTOU);
    if (!err)
        err = copy_from_user(&modes, arg, sizeof(modes));
    if (!err && cmd != TCSETS)
        err = drain(f, t);
    if (err)
        return err;

    flags = spin_lock_irq(&t->lock);
    if (cmd == TCSETSF)
        ldisc_flush_input(t);
    old = t->termios;
    modes.line = old.line;
    t->termios = modes;
    ldisc_modes_changed(t, &old);
    spin_unlock_irq(&t->lock, flags);
    return 0;
}

static int get_size(struct tty *t, u32 arg)
{
    u32 flags = spin_lock_irq(&t->lock);
    struct winsize_k size = t->size;
    spin_unlock_irq(&t->lock, flags);
    return copy_to_user(arg, &size, sizeof(size));
}

static int set_size(struct tty *t, u32 arg)
{
    struct winsize_k size;
    bool changed;
    u32 flags;
    int err = copy_from_user(&size, arg, sizeof(size));
    if (err)
        return err;
    flags = spin_lock_irq(&t->lock);
    changed = memcmp(&t->size, &size, sizeof(size)) != 0;
    t->size = size;
    spin_unlock_irq(&t->lock, flags);
    if (changed)
        jobs_signal(t, SIGWINCH);
    return 0;
}

// Sends the character that asks the other side to stop or continue.
static void send_flow_character(struct tty *t, u32 index)
{
    char c = t->termios.cc[index];
    if (c != 0)
        (void)tty_output(t, &c, 1); // no room: dropped, the line is busy
    tty_output_push(t);
}

static int flow(struct tty *t, u32 what)
{
    u32 flags;
    int err = jobs_check(t, SIGTTOU);
    if (err)
        return err;
    if (what > TCION)
        return -EINVAL;
    flags = spin_lock_irq(&t->lock);
    if (what == TCOOFF || what == TCOON)
        tty_output_stop(t, what == TCOOFF);
    else
        send_flow_character(t, what == TCIOFF ? VSTOP : VSTART);
    spin_unlock_irq(&t->lock, flags);
    return 0;
}

static int flush(struct tty *t, u32 what)
{
    u32 flags;
    int err = jobs_check(t, SIGTTOU);
    if (err)
        return err;
    if (what > TCIOFLUSH)
        return -EINVAL;
    flags = spin_lock_irq(&t->lock);
    if (what != TCOFLUSH)
        ldisc_flush_input(t);
    if (what != TCIFLUSH)
        tty_output_flush(t);
    spin_unlock_irq(&t->lock, flags);
    return 0;
}

// Waits for all output, but sends no break: drivers cannot send one.
static int send_break(struct file *f, struct tty *t)
{
    int err = jobs_check(t, SIGTTOU);
    return err ? err : drain(f, t);
}

static int put_u32(u32 arg, int err, u32 value)
{
    return err ? err : copy_to_user(arg, &value, sizeof(value));
}

static int get_input_count(struct tty *t, u32 arg)
{
    u32 flags = spin_lock_irq(&t->lock);
    u32 count = ldisc_readable_count(t);
    spin_unlock_irq(&t->lock, flags);
    return put_u32(arg, 0, count);
}

static int get_output_count(struct tty *t, u32 arg)
{
    u32 flags = spin_lock_irq(&t->lock);
    u32 count = t->out_head - t->out_tail;
    spin_unlock_irq(&t->lock, flags);
    return put_u32(arg, 0, count);
}

// TIOCSTI: inserts one character as if it had been typed. Only on the caller's
// own controlling terminal, and by root only: a program started by `su` must
// not type into the shell from which it was started.
static int fake_input(struct tty *t, u32 arg)
{
    char c;
    int err;
    if (!is_root())
        return -EIO;
    if (jobs_controlling_tty() != t)
        return -EPERM;
    err = copy_from_user(&c, arg, sizeof(c));
    if (!err)
        tty_input(t, &c, 1);
    return err;
}

static int set_foreground(struct tty *t, u32 arg)
{
    s32 pgrp;
    int err = copy_from_user(&pgrp, arg, sizeof(pgrp));
    return err ? err : jobs_set_pgrp(t, pgrp);
}

int tty_ioctl(struct file *f, u32 cmd, u32 arg)
{
    struct tty *t = tty_of_file(f);
    u32 value = 0;
    int err;
    if (!t)
        return -EIO;
    switch (cmd) {
    case TCGETS:
        return get_modes(t, arg);
    case TCSETS:
    case TCSETSW:
    case TCSETSF:
        return set_modes(f, t, cmd, arg);
    case TIOCGWINSZ:
        return get_size(t, arg);
    case TIOCSWINSZ:
        return set_size(t, arg);
    case TIOCGPGRP:
        err = jobs_get_pgrp(t, &value);
        return put_u32(arg, err, value);
    case TIOCSPGRP:
        return set_foreground(t, arg);
    case TIOCGSID:
        err = jobs_get_session(t, &value);
        return put_u32(arg, err, value);
    case TIOCSCTTY:
        return jobs_acquire(t, arg == 1);
    case TIOCNOTTY:
        return jobs_release(t);
    case TCXONC:
        return flow(t, arg);
    case TCFLSH:
        return flush(t, arg);
    case TCSBRK:
    case TCSBRKP:
        return send_break(f, t);
    case FIONREAD:
        return get_input_count(t, arg);
    case TIOCSTI:
        return fake_input(t, arg);
    case TIOCOUTQ:
        return get_output_count(t, arg);
    default:
        return -ENOTTY;
    }
}
