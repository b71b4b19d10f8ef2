// Locks, waiting and waking, on all CPUs.

#include "kernel/base/errno.h"
#include "kernel/sync/mutex.h"
#include "tests/kernel/thread_helpers.h"

#define THREADS 16

// --- mutual exclusion -------------------------------------------------------

static struct mutex test_mutex = MUTEX_INIT(test_mutex, "test");
static struct spinlock test_spinlock = SPINLOCK_INIT("test");
static u32 counter_mutex, counter_spin, inside;

static void count_under_locks(void *arg UNUSED)
{
    for (u32 i = 0; i < 1000; i++) {
        mutex_lock(&test_mutex);
        u32 seen = counter_mutex;
        if (i % 100 == 0) // another thread could enter here
            sched_yield();
        counter_mutex = seen + 1;
        mutex_unlock(&test_mutex);

        u32 flags = spin_lock_irq(&test_spinlock);
        expect(++inside == 1);
        counter_spin++;
        inside--;
        spin_unlock_irq(&test_spinlock, flags);
    }
    report_done();
}

KERNEL_TEST(locks_exclude)
{
    reset();
    counter_mutex = counter_spin = 0;
    for (u32 i = 0; i < THREADS; i++)
        start(count_under_locks, NULL);
    wait_for(THREADS);
    expect(counter_mutex == THREADS * 1000);
    expect(counter_spin == THREADS * 1000);
}

// --- a waiter is passed over a few times at most ----------------------------

#define HOLDS 2000 // of each hog, at most

static struct mutex hogged = MUTEX_INIT(hogged, "test");
static bool waiting, was_served;
static u32 hogs_there, passed_over;

// Each time that the waiter runs, it finds the mutex taken. All are bound to
// one CPU, so that each yield lets it run.
static void hog(void *arg UNUSED)
{
    expect(!run_on(current, 0));
    mutex_lock(&hogged);
    ADD_ONCE(hogs_there, 1);
    mutex_unlock(&hogged);
    for (u32 held = 0; held < HOLDS && !READ_ONCE(was_served);) {
        mutex_lock(&hogged);
        held += READ_ONCE(waiting);
        passed_over += READ_ONCE(waiting);
        sched_yield();
        mutex_unlock(&hogged);
    }
    report_done();
}

// How many holds of others there are from when this thread waits.
static u32 holds_before_waiter(u32 hogs)
{
    reset();
    hogs_there = passed_over = 0;
    WRITE_ONCE(was_served, false);
    expect(!run_on(current, 0));
    for (u32 i = 0; i < hogs; i++)
        start(hog, NULL);
    while (READ_ONCE(hogs_there) < hogs)
        sleep_ms(1);
    WRITE_ONCE(waiting, true);
    mutex_lock(&hogged);
    WRITE_ONCE(waiting, false);
    WRITE_ONCE(was_served, true);
    u32 holds = passed_over;
    mutex_unlock(&hogged);
    wait_for(hogs);
    expect(!run_anywhere(current));
    return holds;
}

KERNEL_TEST(mutex_waiters_are_served)
{
    expect(holds_before_waiter(1) <= 3);
    expect(holds_before_waiter(8) <= 3 * 8);
}

// --- no wake-up is lost -----------------------------------------------------

struct ping {
    struct waitq queue;
    u32 turn;
};
static struct ping ping;

static void play(void *arg)
{
    u32 me = (u32)arg;
    for (u32 i = 0; i < 2000; i++) {
        wait_event(&ping.queue, READ_ONCE(ping.turn) == me,
                   WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
        WRITE_ONCE(ping.turn, !me);
        waitq_wake_all(&ping.queue);
    }
    report_done();
}

KERNEL_TEST(wakeups_are_not_lost)
{
    reset();
    waitq_init(&ping.queue, "ping");
    ping.turn = 0;
    start(play, (void *)0);
    start(play, (void *)1);
    wait_for(2);
    expect(ping.turn == 0);
}

// --- sleeping ---------------------------------------------------------------

static void sleep_some(void *arg)
{
    u64 wanted = (u32)arg * 100 * NSEC_PER_USEC;
    u64 before = clock_now_ns();
    expect(!thread_sleep_until(before + wanted, WAIT_UNINTERRUPTIBLE));
    expect(clock_now_ns() >= before + wanted);
    report_done();
}

KERNEL_TEST(sleep_never_short)
{
    reset();
    for (u32 i = 0; i < THREADS; i++)
        start(sleep_some, (void *)(i + 1));
    wait_for(THREADS);
}

KERNEL_TEST(wait_event_times_out)
{
    struct waitq q = WAITQ_INIT(q, "test");
    u64 deadline = clock_now_ns() + NSEC_PER_MSEC;
    expect(wait_event(&q, false, WAIT_UNINTERRUPTIBLE, deadline) == -ETIMEDOUT);
    expect(clock_now_ns() >= deadline);
    expect(waitq_empty(&q));
    expect(!wait_event(&q, true, WAIT_UNINTERRUPTIBLE, 0));
}
