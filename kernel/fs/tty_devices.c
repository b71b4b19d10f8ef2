// The list of terminals, and their device nodes: one for each present driver,
// /dev/tty and /dev/console.
//
// The list is filled at start-up and constant afterwards. A device's file
// operations are set at open, which attaches the file to a terminal.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/tty_private.h"
#include "kernel/mm/heap.h"
#include "lib/set.h"
#include "lib/string.h"

#define TTYS_MAX 8
#define TTY_MODE 0620u

static struct tty *ttys[TTYS_MAX];
static u32 tty_count;

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
            (void)jobs_acquire(t, false); // failure is ignored
        return err;
    }
    return -ENXIO;
}

// /dev/tty: the controlling terminal.
static int open_controlling(struct file *f)
{
    struct tty *t = jobs_controlling_tty();
    return !t ? -ENXIO : tty_attach_file(t, f, false);
}

// /dev/console: the terminal of the first console, else the first terminal.
// Opening it never makes it a controlling terminal, and a hang-up does not
// affect it.
static int open_console(struct file *f)
{
    const char *name = console_name();
    for (u32 i = 0; name && i < tty_count; i++) {
        if (strcmp(ttys[i]->driver->name, name) == 0)
            return tty_attach_file(ttys[i], f, true);
    }
    return tty_count == 0 ? -ENXIO : tty_attach_file(ttys[0], f, true);
}

static const struct char_device controlling_device = {
    .name = "tty",
    .rdev = DEVICE_NUMBER(5, 0),
    .mode = 0666,
    .open = open_controlling,
};
CHAR_DEVICE(controlling_device);

static const struct char_device console_device = {
    .name = "console",
    .rdev = DEVICE_NUMBER(5, 1),
    .mode = 0600,
    .open = open_console,
};
CHAR_DEVICE(console_device);

struct tty *tty_create(struct tty_driver *d)
{
    assert(d->name && d->write);
    struct tty *t = kzalloc(sizeof(*t));

    if (!t)
        return NULL;
    t->driver = d;
    t->size = (struct winsize_k){ .rows = d->rows, .cols = d->cols };
    t->device = (struct char_device){
        .name = d->name,
        .rdev = d->rdev,
        .mode = TTY_MODE,
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
    if (!t) {
        log_printf("tty: no room for %s\n", d->name);
        return;
    }
    ttys[tty_count++] = t;
    d->tty = t;
    err = char_device_register(&t->device);
    if (err)
        log_printf("tty: no /dev/%s: error %d\n", d->name, -err);
    if (d->start)
        d->start(d);
}

void tty_init(void)
{
    LINKER_SET_FOR_EACH(struct tty_driver, driver, tty_drivers) {
        if ((*driver)->present == NULL || (*driver)->present(*driver))
            add_terminal(*driver);
    }
}
