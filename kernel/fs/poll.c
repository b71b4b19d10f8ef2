// The wait behind poll and select.
//
// The thread marks itself sleeping before each check of the files, so an event
// between the check and the sleep ends the sleep at once. While it is marked,
// files' poll operations may take spinlocks but must not sleep.
#include "kernel/fs/poll.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/thread.h"

#define WAITERS_PER_BLOCK 32u

struct poll_more {
    struct poll_more *next;
    u32 count;
    struct waiter waiters[WAITERS_PER_BLOCK];
};

static struct waiter *new_waiter(struct poll_wait *pw)
{
    assert_checked(pw->count <= POLL_WAITERS_INLINE);
    if (pw->count < POLL_WAITERS_INLINE)
        return &pw->waiters[pw->count++];
    if (!pw->more || pw->more->count == WAITERS_PER_BLOCK) {
        struct poll_more *block = kmalloc(sizeof(*block));
        if (!block)
            return NULL;
        block->next = pw->more;
        block->count = 0;
        pw->more = block;
    }
    return &pw->more->waiters[pw->more->count++];
}

void poll_register(struct poll_wait *pw, struct waitq *q)
{
    assert(q);
    if (!pw)
        return;
    struct waiter *w = new_waiter(pw);
    if (w)
        waiter_add(w, q);
    else
        pw->err = -ENOMEM;
}

static void unregister_all(struct poll_wait *pw)
{
    for (u32 i = 0; i < pw->count; i++)
        waiter_remove(&pw->waiters[i]);
    while (pw->more) {
        struct poll_more *block = pw->more;
        for (u32 i = 0; i < block->count; i++)
            waiter_remove(&block->waiters[i]);
        pw->more = block->next;
        kfree(block);
    }
}

// Files without a poll operation are always ready.
static u32 file_events(struct file *f, struct poll_wait *pw)
{
    u32 events = f->ops->poll ? f->ops->poll(f, pw) : POLLIN | POLLOUT;
    if (events & POLLIN)
        events |= POLLRDNORM;
    if (events & POLLOUT)
        events |= POLLWRNORM;
    return events;
}

// Polls every file; once one has events, no further queues are registered.
static int scan_slots(struct poll_slot *slots, u32 count, struct poll_wait *pw)
{
    int ready = 0;
    for (u32 i = 0; i < count; i++) {
        struct poll_slot *s = &slots[i];
        if (!s->ref.file)
            continue;
        s->found = file_events(s->ref.file, ready ? NULL : pw) & s->events;
        if (s->found)
            ready++;
    }
    return ready;
}

int poll_files(struct poll_slot *slots, u32 count, u64 deadline)
{
    assert_may_sleep();
    struct poll_wait pw;
    int ready, err = 0;
    if (deadline == 0)
        return scan_slots(slots, count, NULL);
    pw.count = 0;
    pw.err = 0;
    pw.more = NULL;
    struct poll_wait *register_with = &pw;
    for (;;) {
        wait_prepare(WAIT_INTERRUPTIBLE);
        ready = scan_slots(slots, count, register_with);
        register_with = NULL;
        err = err ? err : pw.err;
        if (ready || err)
            break;
        WRITE_ONCE(current->wait_on, "poll");
        err = wait_sleep(WAIT_INTERRUPTIBLE, deadline);
    }
    wait_finish();
    unregister_all(&pw);
    if (ready || err == -ETIMEDOUT)
        return ready;
    return err;
}
