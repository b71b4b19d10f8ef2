// Callouts: a calendar queue and a lock per CPU.
//
// A CPU inserts callouts only into its own queue, and only it takes out those
// that are due; other CPUs may remove callouts. A callout's members are guarded
// by the lock of the queue that its `queue` names, which changes with that lock
// held. `running` shows callout_drain that a handler is running: it is set in
// the same critical section in which the callout ceases to be pending.

#include "kernel/time/callout.h"

#include "arch/irq.h"
#include "arch/mmu.h"
#include "kernel/base/errors.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/waitq.h"
#include "kernel/time/ledger.h"
#include "kernel/time/timer_losses.h"
#include "kernel/trace/point.h"
#include "lib/format.h"

ERROR_COUNTER(lost, "timer interrupts, lost or late",
              "the timer is set again, 1 s to 6 s after it was due");

enum { IDLE, PENDING, DUE }; // DUE: in the list `due`

struct callouts {
    struct spinlock lock;
    struct calendar calendar;
    // Written by this CPU with interrupts off: the deadline that its timer is
    // armed for, which an earlier interrupt does not change; while
    // `in_interrupt`, the deadline that it will be armed for at the end.
    u64 armed;
    bool in_interrupt;
    struct timer_losses losses; // of this CPU's timer, by callouts_repeat
    // CALLOUT_THREAD callouts that are due, for the thread.
    struct list due;
    struct waitq work, done;
    struct callout *running[2]; // by `context`; marked accesses
};

void callouts_init_cpu(struct cpu *cpu)
{
    struct callouts *q = kzalloc(sizeof(*q));
    if (!q)
        boot_lacks_memory("callouts");
    spin_init(&q->lock, "callouts");
    list_init(&q->due);
    waitq_init(&q->work, "due callouts");
    waitq_init(&q->done, "callout drain");
    q->armed = CALENDAR_NEVER;
    WRITE_ONCE(cpu->callouts, q);
}

void callout_init(struct callout *c, void (*fn)(struct callout *c), u32 context)
{
    assert(fn && context <= CALLOUT_THREAD);
    *c = (struct callout){ .fn = fn,
                           .queue = this_cpu()->callouts,
                           .context = (u8)context };
}

// Locks the callout's queue. Interrupts are off.
static struct callouts *lock_queue_of(const struct callout *c)
{
    assert(!irqs_enabled());
    for (;;) {
        struct callouts *q = READ_ONCE(c->queue);
        spin_lock(&q->lock);
        if (READ_ONCE(c->queue) == q)
            return q;
        spin_unlock(&q->lock); // it moved before the lock was taken
    }
}

// The timer stays armed even if it was for this callout: a spurious interrupt
// costs less than arming it anew for each time-out that is cancelled.
static bool take_back(struct callouts *q, struct callout *c)
{
    spin_assert_held(&q->lock);
    if (c->state == IDLE)
        return false;
    if (c->state == PENDING)
        calendar_remove(&q->calendar, &c->event);
    else
        list_remove(&c->event.node);
    WRITE_ONCE(c->state, IDLE);
    return true;
}

// True if the timer's interrupt is so late that it must have been lost.
static bool is_overdue(const struct callouts *q)
{
    spin_assert_held(&q->lock);
    return q->armed != CALENDAR_NEVER &&
           q->armed + CALLOUTS_LOST_NS < clock_now_ns();
}

static NOINLINE void arm_if_lost(const struct callouts *q)
{
    if (q->in_interrupt || !is_overdue(q))
        return;
    error_count(&lost);
    clock_arm(q->armed);
}

// A timer for all CPUs interrupts the boot CPU.
static void count_loss(struct callouts *q, const struct cpu *cpu)
{
    spin_assert_held(&q->lock);
    u32 vector = clock_event_vector();
    bool own = vector == VECTOR_TIMER;
    timer_losses_add(&q->losses, irq_count(own ? cpu->id : 0, vector),
                     irq_count(cpu->id, VECTOR_FORWARDED),
                     own && cpu != this_cpu());
}

bool callouts_timer_failed(void)
{
    for (u32 i = 0; i < cpu_count; i++) {
        if (READ_ONCE(cpus[i]->callouts->losses.count) >= CALLOUTS_LOSSES_MAX)
            return true;
    }
    return false;
}

void callouts_timer_replaced(void)
{
    for (u32 i = 0; i < cpu_count; i++)
        WRITE_ONCE(cpus[i]->callouts->losses.count, 0);
}

bool callouts_repeat(const struct cpu *cpu)
{
    struct callouts *q = cpu->callouts;
    if (!spin_try_lock(&q->lock))
        return false;
    bool overdue = is_overdue(q);
    if (overdue)
        count_loss(q, cpu);
    spin_unlock(&q->lock);
    if (overdue) {
        error_count(&lost);
        if (cpu == this_cpu())
            clock_arm(q->armed);
        else
            clock_send_event(cpu);
    }
    return overdue;
}

void callout_set(struct callout *c, u64 deadline)
{
    u32 flags = irq_save();
    struct callouts *mine = this_cpu()->callouts, *q = lock_queue_of(c);
    take_back(q, c);
    while (q != mine) {
        WRITE_ONCE(c->queue, mine);
        spin_unlock(&q->lock);
        q = lock_queue_of(c);
        take_back(q, c); // it was set again concurrently
    }
    WRITE_ONCE(c->state, PENDING);
    calendar_insert(&q->calendar, &c->event, deadline);
    if (deadline < q->armed) {
        q->armed = deadline;
        if (!q->in_interrupt)
            clock_arm(deadline);
    } else if (unlikely(deadline - q->armed > CALLOUTS_LOST_NS)) {
        arm_if_lost(q); // `armed` is past: no deadline is below it
    }
    spin_unlock(&q->lock);
    irq_restore(flags);
}

bool callout_stop(struct callout *c)
{
    u32 flags = irq_save();
    struct callouts *q = lock_queue_of(c);
    bool was_pending = take_back(q, c);
    spin_unlock(&q->lock);
    irq_restore(flags);
    return was_pending;
}

// Waits until no CPU runs the handler. The callout may have been set on another
// CPU since its handler began, so all CPUs are checked. None can begin to run
// it: it is not pending.
static void wait_until_through(const struct callout *c)
{
    for (u32 i = 0; i < cpu_count; i++) {
        struct callouts *q = cpus[i]->callouts;
        struct callout **running = &q->running[c->context];
        if (__atomic_load_n(running, __ATOMIC_ACQUIRE) != c)
            continue;
        if (c->context == CALLOUT_THREAD) {
            wait_event(&q->done,
                       __atomic_load_n(running, __ATOMIC_ACQUIRE) != c,
                       WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
            continue;
        }
        assert(q != this_cpu()->callouts || irqs_enabled());
        while (__atomic_load_n(running, __ATOMIC_ACQUIRE) == c)
            cpu_relax();
    }
}

bool callout_drain(struct callout *c)
{
    bool was_pending = false;
    do {
        was_pending |= callout_stop(c);
        wait_until_through(c);
    } while (callout_pending(c)); // its handler had set it again
    return was_pending;
}

// (Not inlined: it would cost the path without the trace an instruction.)
static NOINLINE u32 function_of(const struct callout *c)
{
    return linked_address((u32)c->fn);
}

// Marks the handler as running, with the queue locked. The caller unlocks the
// queue before it calls the handler.
static ALWAYS_INLINE void begin(struct callouts *q, struct callout *c,
                                u32 context)
{
    spin_assert_held(&q->lock);
    TRACE(timer_fire, .function = function_of(c),
          .late = clock_now_ns() - c->event.at);
    WRITE_ONCE(q->running[context], c);
    WRITE_ONCE(c->state, IDLE);
}

// The handler has returned and may have freed its callout.
static void end(struct callouts *q, u32 context)
{
    __atomic_store_n(&q->running[context], NULL, __ATOMIC_RELEASE);
}

// If the first callout is due, runs it, or queues it for the thread and returns
// true. Sets `armed` to the next deadline.
static bool run_first(struct callouts *q, u64 now)
{
    spin_lock(&q->lock);
    struct calendar_event *event = calendar_take(&q->calendar, now);
    struct callout *c = container_of(event, struct callout, event);
    q->armed = calendar_next(&q->calendar);
    bool hand_over = event && c->context == CALLOUT_THREAD;
    if (hand_over) {
        WRITE_ONCE(c->state, DUE);
        list_push_back(&q->due, &event->node);
    } else if (event) {
        begin(q, c, CALLOUT_INTERRUPT);
    }
    spin_unlock(&q->lock);
    if (event && !hand_over) {
        c->fn(c);
        end(q, CALLOUT_INTERRUPT);
    }
    return hand_over;
}

void callouts_interrupt(u64 now)
{
    assert_checked(!irqs_enabled());
    struct callouts *q = this_cpu()->callouts;
    bool work = false;
    q->in_interrupt = true;
    while (q->armed <= now)
        work |= run_first(q, now);
    q->in_interrupt = false;
    if (q->armed != CALENDAR_NEVER)
        clock_arm(q->armed);
    if (work)
        waitq_wake_all(&q->work);
}

// --- the threads ------------------------------------------------------------

static struct callout *take_due(struct callouts *q)
{
    struct callout *c = NULL;
    u32 flags = spin_lock_irq(&q->lock);
    if (!list_empty(&q->due)) {
        c = list_first(&q->due, struct callout, event.node);
        list_remove(&c->event.node);
        begin(q, c, CALLOUT_THREAD);
    }
    spin_unlock_irq(&q->lock, flags);
    return c;
}

void callouts_serve(struct cpu *cpu)
{
    struct callouts *q = cpu->callouts;
    subsystem_enter(IN_TIME);
    for (;;) {
        struct callout *c;
        wait_event(&q->work, !list_empty_unlocked(&q->due),
                   WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
        while ((c = take_due(q))) {
            c->fn(c);
            end(q, CALLOUT_THREAD);
            waitq_wake_all(&q->done);
        }
    }
}
