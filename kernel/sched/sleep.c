// Sleeping: the parts of wait_event (kernel/sync/waitq.h).

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/sched/thread.h"
#include "kernel/time/wallclock.h"

void wait_prepare(u32 mode)
{
    enum thread_state state =
        mode == WAIT_UNINTERRUPTIBLE ? THREAD_SLEEPING : THREAD_WAITING;
    // A full barrier: the state is visible before the condition is read.
    __atomic_store_n(&current->state, state, __ATOMIC_SEQ_CST);
}

static void wait_expired(struct callout *timeout)
{
    struct thread *t = container_of(timeout, struct thread, wait_timeout);
    WRITE_ONCE(t->wake_timed_out, true);
    thread_wake(t);
}

// Sleeps until woken (0) or until the deadline (-ETIMEDOUT).
static int sleep_timed(struct thread *t, u64 deadline)
{
    if (deadline <= clock_now_ns())
        return -ETIMEDOUT;
    WRITE_ONCE(t->wake_timed_out, false);
    callout_init(&t->wait_timeout, wait_expired, CALLOUT_INTERRUPT);
    callout_set(&t->wait_timeout, deadline);
    schedule();
    callout_drain(&t->wait_timeout);
    return READ_ONCE(t->wake_timed_out) ? -ETIMEDOUT : 0;
}

static struct waitq wall_sleepers = WAITQ_INIT(wall_sleepers, "wall clock");

// The clock was set: all sleepers check it again. For most it is a spurious
// wake-up, which waiters allow.
static void wake_wall_sleepers(void)
{
    waitq_wake_all(&wall_sleepers);
}

static const struct wallclock_observer wall_sleepers_observer = {
    wake_wall_sleepers
};
WALLCLOCK_OBSERVER(wall_sleepers_observer);

// The thread is queued before it reads the clock: setting the clock later wakes
// it.
static int sleep_until_wall(struct thread *t, s64 at)
{
    struct waiter w;
    const char *wait_on = t->wait_on;
    waiter_add(&w, &wall_sleepers);
    WRITE_ONCE(t->wait_on, wait_on);
    s64 deadline = at - wallclock_boot_ns();
    int err = sleep_timed(t, deadline < 0 ? 0 : (u64)deadline);
    waiter_remove(&w);
    // The clock may have been set back since: a timeout is then a wake-up.
    return err && wallclock_now_ns() < at ? 0 : err;
}

static bool interrupted(u32 mode)
{
    return (mode == WAIT_INTERRUPTIBLE && signal_waiting()) ||
           (mode == WAIT_KILLABLE && signal_fatal());
}

static void sleep_forever(struct thread *t)
{
    u32 seconds = wakes_patience();
    if (!seconds)
        schedule();
    else
        wakes_slept(sleep_timed(t, clock_now_ns() + seconds * NSEC_PER_SEC));
}

int wait_sleep(u32 mode, u64 deadline)
{
    struct thread *t = current;
    int err = 0;
    wakes_slept(false);
    lockdep_may_sleep(t->wait_on ? t->wait_on : "a wait queue");
    assert(!this_cpu_read(preempt_count));
    if (interrupted(mode))
        return -EINTR;
    if (deadline == WAIT_FOREVER)
        sleep_forever(t);
    else if (deadline & WAIT_WALL_CLOCK)
        err = sleep_until_wall(t, (s64)(deadline & ~WAIT_WALL_CLOCK));
    else
        err = sleep_timed(t, deadline);
    if (err)
        return err;
    return interrupted(mode) ? -EINTR : 0;
}

void wait_finish(void)
{
    // Own state, written without the queue's lock: a waker that still reads the
    // old state also sets it to THREAD_RUNNING.
    __atomic_store_n(&current->state, THREAD_RUNNING, __ATOMIC_SEQ_CST);
    WRITE_ONCE(current->wait_on, NULL);
}

int thread_sleep_until(u64 deadline, u32 mode)
{
    int err = 0;
    WRITE_ONCE(current->wait_on, "sleep");
    while (!err) {
        wait_prepare(mode);
        err = wait_sleep(mode, deadline);
    }
    wait_finish();
    return err == -ETIMEDOUT ? 0 : err;
}
