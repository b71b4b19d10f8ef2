// Helpers of tests that start threads and wait until all have ended.
#pragma once

#include "kernel/task/task.h"
#include "tests/kernel/test.h"

static struct waitq done_queue = WAITQ_INIT(done_queue, "test");
static u32 done_count;

// A test's first step.
static inline void reset(void)
{
    done_count = 0;
}

static inline void start(void (*fn)(void *), void *arg)
{
    expect(!kthread_create("test", fn, arg, NULL));
}

// A thread's last step.
static inline void report_done(void)
{
    __atomic_add_fetch(&done_count, 1, __ATOMIC_SEQ_CST);
    waitq_wake_all(&done_queue);
}

static inline void wait_for(u32 count)
{
    wait_event(&done_queue, READ_ONCE(done_count) == count,
               WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
}

static inline void sleep_ms(u32 ms)
{
    thread_sleep_until(clock_now_ns() + ms * NSEC_PER_MSEC,
                       WAIT_UNINTERRUPTIBLE);
}
