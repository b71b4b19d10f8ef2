// Interrupts as calls: a task that watches a vector receives a notification in
// its answerbox.
//
// Each watch counts the interrupts since its task last fetched it; so any
// number of interrupts makes one notification and one wake-up. `watches_lock`
// (interrupt-disabling) guards all watches. While there is one, the end of each
// interrupt looks at its vector's list. box->notified is written under it, and
// read by sleepers without it.
#include "arch/irq.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/ipc/ipc.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"
#include "kernel/trace/point.h"

#define ISA_LINES 16u
#define VECTOR_FIRST 0x20u

struct watch {
    struct list vector_node; // of all watches of the vector
    struct list box_node;    // box->watches, the next to be fetched first
    struct answerbox *box;   // open: closing ends the watch
    u32 irq, vector;         // as requested; its vector
    u32 count, cpu;          // since the last fetch; of the last interrupt
};

SLAB_CACHE(watch_cache, struct watch);
static struct spinlock watches_lock = SPINLOCK_INIT("irq watches");
static struct list by_vector[VECTORS]; // a list is initialised with its first
                                       // watch

static void interrupted(const void *record)
{
    u32 vector = ((const struct trace_irq_exit *)record)->vector;
    assert(vector < VECTORS);
    struct watch *w;
    if (!READ_ONCE(by_vector[vector].next))
        return;
    u32 flags = spin_lock_irq(&watches_lock);
    assert_checked(!irqs_enabled());
    list_for_each(w, &by_vector[vector], vector_node) {
        w->cpu = this_cpu()->id;
        if (w->count++)
            continue;
        WRITE_ONCE(w->box->notified, true);
        box_wake(w->box);
    }
    spin_unlock_irq(&watches_lock, flags);
}

static struct trace_listener listener = { .point = TRACE_irq_exit,
                                          .fn = interrupted };

// Describes the watch's interrupts in *out and moves it to the end of the list.
static void take_count(struct watch *w, struct ipc_call *out)
{
    spin_assert_held(&watches_lock);
    assert(w->count);
    *out = (struct ipc_call){ .method = IPC_M_IRQ,
                              .arg = { w->irq, w->vector, w->count, w->cpu } };
    w->count = 0;
    list_remove(&w->box_node);
    list_push_back(&w->box->watches, &w->box_node);
}

bool irq_fetch(struct answerbox *b, struct ipc_call *out)
{
    struct watch *w, *got = NULL;
    bool more = false;
    u32 flags = spin_lock_irq(&watches_lock);
    list_for_each(w, &b->watches, box_node) {
        more = got && w->count;
        if (more)
            break;
        if (w->count)
            got = w;
    }
    if (got)
        take_count(got, out);
    WRITE_ONCE(b->notified, more);
    spin_unlock_irq(&watches_lock, flags);
    if (more) // for another waiting thread
        box_wake(b);
    if (got)
        ipc_count(&b->task->ipc_counters.irq_notif_received);
    return got;
}

// watches_lock is held.
static struct watch *find(struct answerbox *b, u32 vector)
{
    spin_assert_held(&watches_lock);
    struct watch *w;
    list_for_each(w, &b->watches, box_node) {
        if (w->vector == vector)
            return w;
    }
    return NULL;
}

static void insert(struct watch *w)
{
    spin_assert_held(&watches_lock);
    struct list *watches = &by_vector[w->vector];
    if (!watches->next)
        list_init(watches);
    list_push_back(watches, &w->vector_node);
    list_push_back(&w->box->watches, &w->box_node);
}

static void take_out(struct watch *w)
{
    spin_assert_held(&watches_lock);
    list_remove(&w->vector_node);
    list_remove(&w->box_node);
}

static void watch_free(struct watch *w)
{
    trace_unlisten(&listener);
    slab_free(&watch_cache, w);
}

static int start(struct answerbox *b, u32 irq, u32 vector)
{
    assert(vector >= 32 && vector < 256);
    struct watch *w = slab_alloc(&watch_cache);
    if (!w)
        return -ENOMEM;
    *w = (struct watch){ .box = b, .irq = irq, .vector = vector };
    trace_listen(&listener);
    int err = 0;
    u32 flags = spin_lock_irq(&watches_lock);
    if (find(b, vector))
        err = -EBUSY;
    else if (READ_ONCE(b->closed))
        err = -ECONNRESET;
    else
        insert(w);
    spin_unlock_irq(&watches_lock, flags);
    if (err)
        watch_free(w);
    return err;
}

static int stop(struct answerbox *b, u32 vector)
{
    u32 flags = spin_lock_irq(&watches_lock);
    struct watch *w = find(b, vector);
    if (w)
        take_out(w);
    spin_unlock_irq(&watches_lock, flags);
    if (!w)
        return -ENOENT;
    watch_free(w);
    return 0;
}

int irq_notify(struct answerbox *b, u32 irq, bool on)
{
    assert_may_sleep();
    u32 vector = irq < ISA_LINES ? VECTOR_DEVICE_FIRST + irq : irq;
    if (vector < VECTOR_FIRST || vector >= VECTORS)
        return -EINVAL;
    if (!on)
        return stop(b, vector);
    if (!irq_name(vector)[0])
        return -ENXIO;
    return start(b, irq, vector);
}

void irq_notify_none(struct answerbox *b)
{
    assert(READ_ONCE(b->closed));
    for (;;) {
        struct watch *w = NULL;
        u32 flags = spin_lock_irq(&watches_lock);
        WRITE_ONCE(b->notified, false);
        if (!list_empty(&b->watches)) {
            w = list_first(&b->watches, struct watch, box_node);
            take_out(w);
        }
        spin_unlock_irq(&watches_lock, flags);
        if (!w)
            return;
        watch_free(w);
    }
}
