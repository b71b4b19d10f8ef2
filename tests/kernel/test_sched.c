// Threads, waiting, waking, locks: on all CPUs there are.

#include "tests/kernel/test.h"

#include "kernel/base/errno.h"
#include "kernel/monitor/audit.h"
#include "kernel/sync/mutex.h"
#include "kernel/task/task.h"

#define THREADS 16

static struct waitq done_queue = WAITQ_INIT(done_queue, "test");
static u32 done_count;

static void reset(void)
{
    done_count = 0;
}

static void report_done(void)
{
    __atomic_add_fetch(&done_count, 1, __ATOMIC_SEQ_CST);
    waitq_wake_all(&done_queue);
}

static void wait_for(u32 count)
{
    wait_event(&done_queue, READ_ONCE(done_count) == count,
               WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
}

static void start(void (*fn)(void *), void *arg)
{
    expect(!kthread_create("test", fn, arg, NULL));
}

// --- mutual exclusion -------------------------------------------------------

static struct mutex test_mutex = MUTEX_INIT(test_mutex, "test");
static struct spinlock test_spinlock = SPINLOCK_INIT("test");
static u32 counter_mutex, counter_spin, inside;

static void count_under_locks(void *arg UNUSED)
{
    for (u32 i = 0; i < 1000; i++) {
        mutex_lock(&test_mutex);
        u32 seen = counter_mutex;
        if (i % 100 == 0) // others get their chance to break it
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

// --- affinity ---------------------------------------------------------------

static void check_cpu(void *arg UNUSED)
{
    for (u32 round = 0; round < 20; round++) {
        u32 cpu = test_random() % cpu_count;
        expect(!thread_set_affinity(current, 1u << cpu));
        preempt_disable();
        expect(this_cpu()->id == cpu);
        preempt_enable();
        sched_yield();
    }
    expect(thread_set_affinity(current, 0) == -EINVAL);
    report_done();
}

KERNEL_TEST(affinity_is_kept)
{
    reset();
    for (u32 i = 0; i < THREADS; i++)
        start(check_cpu, NULL);
    wait_for(THREADS);
}

// --- preemption -------------------------------------------------------------

static bool let_go;

static void spin_until_let_go(void *arg UNUSED)
{
    while (!READ_ONCE(let_go))
        cpu_relax();
    report_done();
}

// As many spinners as CPUs: whoever lets them go must get a CPU from one.
KERNEL_TEST(spinning_threads_are_preempted)
{
    reset();
    let_go = false;
    for (u32 i = 0; i < cpu_count * 2; i++)
        start(spin_until_let_go, NULL);
    thread_sleep_until(clock_now_ns() + 2 * NSEC_PER_MSEC,
                       WAIT_UNINTERRUPTIBLE);
    WRITE_ONCE(let_go, true);
    wait_for(cpu_count * 2);
}

// --- the ledger -------------------------------------------------------------

KERNEL_TEST(ledger_counts_a_thread)
{
    u64 u0, k0, u1, k1;
    u32 flags = irq_save();
    u64 before = rdtsc();
    thread_times(current, &u0, &k0);
    for (u32 i = 0; i < 10000; i++)
        barrier();
    thread_times(current, &u1, &k1);
    u64 after = rdtsc();
    irq_restore(flags);
    expect(u0 == u1);
    expect(k1 > k0);
    expect(k1 - k0 <= after - before);
}

KERNEL_TEST(ledger_sums_to_elapsed)
{
    for (u32 cpu = 0; cpu < cpu_count; cpu++) {
        struct ledger_sums s;
        ledger_sums(cpu, &s);
        expect(s.user + s.kernel + s.irq + s.idle + s.start_up == s.elapsed);
        expect(s.elapsed > 0);
    }
}

static void work_and_sleep(void *arg UNUSED)
{
    for (u32 i = 0; i < 50; i++) {
        sched_yield();
        thread_sleep_until(clock_now_ns() + test_random() % 100000,
                           WAIT_UNINTERRUPTIBLE);
    }
    report_done();
}

KERNEL_TEST(ledger_audit_balances_under_load)
{
    reset();
    for (u32 i = 0; i < THREADS; i++)
        start(work_and_sleep, NULL);
    while (READ_ONCE(done_count) < THREADS) {
        struct audit a;
        audit_take(&a);
        u64 user = 0, kernel = 0;
        for (u32 i = 0; i < a.cpus; i++) {
            const struct ledger_sums *s = &a.cpu[i];
            expect(s->user + s->kernel + s->irq + s->idle + s->start_up ==
                   s->elapsed);
            user += s->user;
            kernel += s->kernel;
        }
        expect(user == a.threads_user);
        expect(kernel == a.threads_kernel);
        sched_yield();
    }
    wait_for(THREADS);
}
