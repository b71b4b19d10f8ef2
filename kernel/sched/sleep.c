// Sleeping: the pieces that wait_event (kernel/sync/waitq.h) is made of.

#include "kernel/errno.h"
#include "kernel/init/log.h"
#include "kernel/sched/thread.h"

void wait_prepare(u32 mode)
{
    enum thread_state state =
        mode == WAIT_INTERRUPTIBLE ? THREAD_WAITING : THREAD_SLEEPING;
    // A full barrier: the state is visible before the condition is read.
    __atomic_store_n(&current->state, state, __ATOMIC_SEQ_CST);
}

static void wait_expired(struct timeout *timeout)
{
    struct thread *t = container_of(timeout, struct thread, wait_timeout);
    WRITE_ONCE(t->wake_timed_out, true);
    thread_wake(t);
}

int wait_sleep(u32 mode, u64 deadline)
{
    struct thread *t = current;
    lockdep_may_sleep(t->wait_on ? t->wait_on : "a wait queue");
    assert(!this_cpu_read(preempt_count));
    if (mode == WAIT_INTERRUPTIBLE && signal_waiting())
        return -EINTR;
    if (deadline == WAIT_FOREVER) {
        schedule();
    } else {
        if (deadline <= clock_now_ns())
            return -ETIMEDOUT;
        t->wake_timed_out = false;
        timeout_init(&t->wait_timeout, wait_expired);
        timeout_set(&t->wait_timeout, deadline);
        schedule();
        timeout_cancel(&t->wait_timeout);
        if (t->wake_timed_out)
            return -ETIMEDOUT;
    }
    return mode == WAIT_INTERRUPTIBLE && signal_waiting() ? -EINTR : 0;
}

void wait_finish(void)
{
    // Our own state; a waker that still sees the old one sets it to the same.
    __atomic_store_n(&current->state, THREAD_RUNNING, __ATOMIC_SEQ_CST);
    current->wait_on = NULL;
}

int thread_sleep_until(u64 deadline, u32 mode)
{
    int err = 0;
    current->wait_on = "sleep";
    while (!err) {
        wait_prepare(mode);
        err = wait_sleep(mode, deadline);
    }
    wait_finish();
    return err == -ETIMEDOUT ? 0 : err;
}
