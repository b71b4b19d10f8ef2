// Text that is made when it is asked for. See text.h.

#include "kernel/fs/text.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/mutex.h"
#include "lib/format.h"
#include "lib/string.h"

#define FIRST_ROOM 512u
#define ROOM_MAX MIB(1) // as much as kmalloc gives

struct text_file {
    struct mutex lock;
    bool made;
    struct text text;
};

// Makes room for n more bytes. False: there is none.
static bool text_grow(struct text *t, size_t n)
{
    assert(t->len <= t->room);
    size_t room = MAX(t->room, FIRST_ROOM);
    char *data;

    if (n <= t->room - t->len)
        return true;
    while (room < ROOM_MAX && room - t->len < n)
        room *= 2;
    data = room - t->len < n ? NULL : kmalloc(room);
    if (data == NULL) {
        t->failed = true;
        return false;
    }
    if (t->len > 0)
        memcpy(data, t->data, t->len);
    kfree(t->data);
    t->data = data;
    t->room = room;
    return true;
}

void text_append(struct text *t, const void *data, size_t n)
{
    if (!text_grow(t, n))
        return;
    memcpy(t->data + t->len, data, n);
    t->len += n;
}

void text_printf(struct text *t, const char *fmt, ...)
{
    size_t room = t->room - t->len;
    va_list args;
    int n;

    va_start(args, fmt);
    n = format_va(room > 0 ? t->data + t->len : NULL, room, fmt, args);
    va_end(args);
    // The formatter ends what it writes by a NUL, which needs room too.
    if ((size_t)n >= room) {
        if (!text_grow(t, n + 1))
            return;
        va_start(args, fmt);
        format_va(t->data + t->len, n + 1, fmt, args);
        va_end(args);
    }
    t->len += n;
}

void text_clear(struct text *t)
{
    kfree(t->data);
    *t = (struct text){ NULL, 0, 0, false };
}

struct text_file *text_file_create(void)
{
    struct text_file *tf = kzalloc(sizeof(*tf));

    if (tf != NULL)
        mutex_init(&tf->lock, "text file");
    return tf;
}

void text_file_free(struct text_file *tf)
{
    text_clear(&tf->text);
    kfree(tf);
}

static int remake(struct text_file *tf, text_maker make, void *arg)
{
    mutex_assert_held(&tf->lock);
    int err;

    tf->made = false;
    text_clear(&tf->text);
    err = make(&tf->text, arg);
    if (!err && tf->text.failed)
        err = -ENOMEM;
    tf->made = !err;
    return err;
}

// Gives what lies behind *pos. The lock is held while user memory is touched;
// nothing on the page fault path takes it.
static int show(const struct text *t, struct io *io, u64 *pos)
{
    assert(t->data || !t->len);
    size_t n;
    int err;

    if (*pos >= t->len)
        return 0;
    n = MIN(io->left, t->len - (size_t)*pos);
    err = io_to(io, t->data + *pos, n);
    if (err)
        return err;
    *pos += n;
    return n;
}

int text_file_read(struct text_file *tf, struct io *io, u64 *pos,
                   text_maker make, void *arg)
{
    assert_may_sleep();
    int result = 0;

    mutex_lock(&tf->lock);
    if (*pos == 0 || !tf->made)
        result = remake(tf, make, arg);
    if (result == 0)
        result = show(&tf->text, io, pos);
    mutex_unlock(&tf->lock);
    return result;
}
