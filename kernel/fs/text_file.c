// Files whose text is generated at each read. See text_file.h.

#include "kernel/fs/text_file.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/mutex.h"

struct text_file {
    struct mutex lock;
    bool made;
    struct chain text;
};

struct text_file *text_file_create(void)
{
    struct text_file *tf = kzalloc(sizeof(*tf));
    if (tf) {
        mutex_init(&tf->lock, "text file");
        chain_init(&tf->text, 1);
    }
    return tf;
}

void text_file_free(struct text_file *tf)
{
    chain_free(&tf->text);
    kfree(tf);
}

static int remake(struct text_file *tf, text_maker make, void *arg)
{
    mutex_assert_held(&tf->lock);
    int err;

    tf->made = false;
    chain_free(&tf->text);
    err = make(&tf->text, arg);
    if (!err && (tf->text.error || tf->text.count > TEXT_FILE_MAX))
        err = -ENOMEM;
    tf->made = !err;
    if (err)
        chain_free(&tf->text);
    return err;
}

// Copies the text after *pos. The lock is held while user memory is accessed;
// no code on the page fault path takes it.
static int show(const struct chain *t, struct io *io, u64 *pos)
{
    u64 at = 0, begin = *pos;
    int err = 0;
    for (struct chain_page *p = t->first; p && io->left && !err; p = p->next) {
        if (*pos < at + p->used) {
            u32 from = (u32)(*pos - at);
            u32 n = MIN(io->left, p->used - from);
            err = io_to(io, p->data + from, n);
            *pos += err ? 0 : n;
        }
        at += p->used;
    }
    return *pos > begin ? (int)(*pos - begin) : err;
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
