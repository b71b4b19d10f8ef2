// Phones as descriptors: a phone is a file like any other, and fork shares it.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/file.h"
#include "kernel/fs/poll.h"
#include "kernel/ipc/ipc.h"

_Static_assert(sizeof(struct ipc_call) == 48, "the ABI of ipc_call");

static u32 phone_poll(struct file *f, struct poll_wait *pw)
{
    assert_checked(f->data);
    struct phone *p = f->data;
    poll_register(pw, &p->pollers);
    poll_register(pw, &p->box->senders);
    bool dead = phone_dead(p);
    u32 events = phone_ready(p) ? POLLIN : 0;
    if (dead)
        events |= POLLHUP;
    else if (phone_may_send(p))
        events |= POLLOUT;
    return events;
}

static void close_phone(struct file *f)
{
    assert_checked(f->data);
    phone_release(f->data);
}

static const struct file_ops phone_ops = { .poll = phone_poll,
                                           .release = close_phone };

int phone_install(struct answerbox *b)
{
    assert_may_sleep();
    struct phone *p;
    struct file *f = file_alloc(&phone_ops, O_RDWR);
    if (!f)
        return -ENOMEM;
    int err = phone_create(b, &p);
    if (err) {
        file_discard(f);
        return err;
    }
    f->data = p;
    return fd_install(f, true, 0);
}

struct phone *phone_of(const struct file *f)
{
    return f->ops == &phone_ops ? f->data : NULL;
}

int phone_from_fd(u32 fd, struct file **file, struct phone **out)
{
    int err = fd_get(fd, file);
    if (err)
        return err;
    *out = phone_of(*file);
    if (*out)
        return 0;
    file_unref(*file);
    return -EINVAL;
}
