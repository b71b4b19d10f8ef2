#include "kernel/sync/waitq.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/thread.h"

void waitq_init(struct waitq *q, const char *name)
{
    spin_init(&q->lock, name);
    list_init(&q->waiters);
    q->name = name;
    wakes_init(&q->wakes);
}

// The waker changes the condition before this call; a waiter queues itself
// before it reads the condition. With a full barrier on both sides (here and in
// wait_prepare), the waker sees the waiter or the waiter sees the change.
bool waitq_empty(struct waitq *q)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return list_empty_unlocked(&q->waiters);
}

void waitq_wake_all(struct waitq *q)
{
    if (waitq_empty(q))
        return;
    u32 flags = spin_lock_irq(&q->lock);
    wakes_count(&q->wakes);
    struct waiter *w;
    list_for_each(w, &q->waiters, node)
        thread_wake(w->thread);
    spin_unlock_irq(&q->lock, flags);
}

void waitq_wake_one(struct waitq *q)
{
    if (waitq_empty(q))
        return;
    u32 flags = spin_lock_irq(&q->lock);
    wakes_count(&q->wakes);
    struct waiter *w;
    list_for_each(w, &q->waiters, node) {
        if (thread_wake(w->thread))
            break;
    }
    spin_unlock_irq(&q->lock, flags);
}

void waiter_add(struct waiter *w, struct waitq *q)
{
    w->thread = current;
    w->queue = q;
    wakes_slept(false);
    u32 flags = spin_lock_irq(&q->lock);
    list_push_back(&q->waiters, &w->node);
    WRITE_ONCE(current_base()->wait_on, q->name); // ps reads it unlocked
    spin_unlock_irq(&q->lock, flags);
}

void waiter_remove(struct waiter *w)
{
    if (!w->queue)
        return;
    u32 flags = spin_lock_irq(&w->queue->lock);
    list_remove(&w->node);
    spin_unlock_irq(&w->queue->lock, flags);
    w->queue = NULL;
}
