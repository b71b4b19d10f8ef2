// Calls: one message and its answer.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/ipc/ipc.h"
#include "kernel/mm/aspace.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"
#include "kernel/trace/point.h"

SLAB_CACHE_COUNTED(call_cache, struct call, refs);

struct call *call_new(struct phone *p, const struct ipc_call *message)
{
    assert_checked(READ_ONCE(p->refs));
    struct call *c = slab_alloc(&call_cache);
    if (!c)
        return NULL;
    c->refs = 2;
    phone_ref(p);
    c->phone = p;
    list_init(&c->phone_node);
    list_init(&c->box_node);
    c->state = CALL_UNDER_WAY;
    c->waiter = NULL;
    c->method = message->method;
    copy_words(c->arg, message->arg);
    c->task = current_task()->id;
    c->aspace = NULL;
    c->connect = NULL;
    return c;
}

void call_describe(const struct call *c, u32 id, struct ipc_call *out)
{
    out->id = id;
    out->method = c->method;
    copy_words(out->arg, c->arg);
    out->retval = 0;
    out->flags = 0;
    out->task = c->task;
    out->phone = c->phone->id;
}

void call_ref(struct call *c)
{
    u32 old = __atomic_fetch_add(&c->refs, 1, __ATOMIC_RELAXED);
    assert(old); // there must be a reference already
}

void call_unref(struct call *c)
{
    u32 left = __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL);
    assert(left != ~0u);
    if (left)
        return;
    if (c->aspace) // it was never sent
        aspace_unref(c->aspace);
    if (c->connect)
        box_unref(c->connect);
    phone_unref(c->phone);
    slab_free(&call_cache, c);
}

// phone->lock is held.
static void become_answered(struct call *c, const struct ipc_call *answer)
{
    spin_assert_held(&c->phone->lock);
    struct phone *p = c->phone;
    assert_checked(c->state == CALL_UNDER_WAY && p->unfetched_calls);
    c->retval = answer->retval;
    copy_words(c->answer, answer->arg);
    list_remove(&c->phone_node);
    if (c->waiter) {
        WRITE_ONCE(p->unfetched_calls, p->unfetched_calls - 1);
    } else {
        list_push_back(&p->answers, &c->phone_node);
        WRITE_ONCE(p->answer_count, p->answer_count + 1);
    }
    WRITE_ONCE(c->state, CALL_ANSWERED);
}

// Wakes the thread that waits for this answer alone, and senders waiting for
// room.
static void wake(struct thread *waiter, struct waitq *senders)
{
    thread_wake(waiter);
    thread_unref(waiter);
    if (senders)
        waitq_wake_all(senders);
}

void call_answer(struct call *c, const struct ipc_call *answer)
{
    assert_may_sleep();
    struct phone *p = c->phone;
    struct aspace *as = NULL;
    struct thread *waiter = NULL;
    spin_lock(&p->lock);
    bool first = c->state == CALL_UNDER_WAY;
    bool was_full = p->unfetched_calls == IPC_PHONE_CALLS;
    TRACE_IF(ipc_answer, first, .flow = (u32)c, .result = (u32)answer->retval);
    if (first) {
        as = c->aspace;
        c->aspace = NULL;
        waiter = c->waiter;
        if (waiter) // it may run and exit before it is woken
            thread_ref(waiter);
        become_answered(c, answer);
    }
    spin_unlock(&p->lock);
    if (waiter)
        wake(waiter, was_full ? &p->box->senders : NULL);
    else if (first)
        waitq_wake_one(&p->waiters);
    if (first)
        waitq_wake_all(&p->pollers);
    if (as)
        aspace_unref(as);
    call_unref(c);
}

void call_refuse(struct call *c, int error)
{
    assert_checked(error < 0);
    struct ipc_call answer = { .retval = error };
    call_answer(c, &answer);
}

struct aspace *call_take_aspace(struct call *c)
{
    spin_lock(&c->phone->lock);
    struct aspace *as = c->aspace;
    c->aspace = NULL;
    spin_unlock(&c->phone->lock);
    return as;
}
