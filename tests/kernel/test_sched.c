// Promises of the scheduler that user programs cannot test: threads are
// preempted, no level starves, queues stay consistent, affinity is kept.
// `schedtest` measures the exactness of shares, in time that is independent of
// the host's load.

#include "kernel/base/errno.h"
#include "kernel/base/providers.h"
#include "kernel/sched/runqueue.h"
#include "tests/kernel/thread_helpers.h"

#define THREADS 16
#define MOVED 8

static u32 spinning, stop;

static void begin(void)
{
    reset();
    spinning = 0;
    WRITE_ONCE(stop, 0);
}

// Moves the running kernel thread to this level, to be scheduled as a user
// thread of that level is.
static void become(u32 level)
{
    u32 flags = irq_save();
    struct run_queue *rq = this_cpu()->rq;
    spin_lock(&rq->lock);
    current->priority = level;
    WRITE_ONCE(rq->level, level);
    spin_unlock(&rq->lock);
    irq_restore(flags);
}

static u64 cycles_had(const struct thread *t)
{
    u64 user, kernel;
    thread_times(t, &user, &kernel);
    return user + kernel;
}

// --- preemption and shares --------------------------------------------------

struct spinner {
    u32 level, cpu;
};

static void spin_until_stop(void *arg UNUSED)
{
    __atomic_add_fetch(&spinning, 1, __ATOMIC_SEQ_CST);
    while (!READ_ONCE(stop))
        cpu_relax();
    report_done();
}

static void spin(void *arg)
{
    struct spinner *s = arg;
    expect(!run_on(current, s->cpu));
    become(s->level);
    spin_until_stop(NULL);
}

// Twice as many spinning threads as CPUs: the test's thread, which stops them,
// runs only if it preempts one.
KERNEL_TEST(spinning_threads_are_preempted)
{
    begin();
    for (u32 i = 0; i < cpu_count * 2; i++)
        start(spin_until_stop, NULL);
    sleep_ms(2);
    WRITE_ONCE(stop, 1);
    wait_for(cpu_count * 2);
}

// True if the first thread gets most of 100 ms and the others their turns: 1 ms
// in about 11 for each of the two.
static bool have_their_turns(struct thread *const t[3])
{
    u64 had[3], sum = 0;
    for (u32 i = 0; i < 3; i++)
        had[i] = cycles_had(t[i]);
    sleep_ms(100);
    for (u32 i = 0; i < 3; i++) {
        had[i] = cycles_had(t[i]) - had[i];
        sum += had[i];
    }
    return had[0] > sum / 2 && had[1] > sum / 50 && had[2] > sum / 50;
}

// A kernel, an interactive and a batch thread, none of which sleeps, on one
// CPU: each level gets its turns. The test's thread has the kernel's level.
// (A pause of the virtual machine is charged to the running thread: then the
// test measures again.)
KERNEL_TEST(sched_no_level_starves)
{
    static struct spinner spinners[3];
    struct thread *t[3];
    u32 cpu = cpu_count - 1;
    bool found = false;
    begin();
    spinners[0] = (struct spinner){ PRIORITY_KERNEL, cpu };
    spinners[1] = (struct spinner){ PRIORITY_KERNEL + 1, cpu };
    spinners[2] = (struct spinner){ PRIORITY_BATCH, cpu };
    for (u32 i = 0; i < ARRAY_SIZE(spinners); i++)
        expect(!kthread_create("test", spin, &spinners[i], &t[i]));
    while (READ_ONCE(spinning) < ARRAY_SIZE(spinners))
        sleep_ms(1);
    for (u32 i = 0; i < 50 && !found; i++)
        found = have_their_turns(t);
    expect(found);
    WRITE_ONCE(stop, 1);
    wait_for(ARRAY_SIZE(spinners));
    for (u32 i = 0; i < ARRAY_SIZE(spinners); i++)
        thread_unref(t[i]);
}

// One more batch thread than CPUs, free to migrate: each makes progress. (If
// one does not, the test does not end.)
KERNEL_TEST(sched_batch_threads_all_get_on)
{
    static struct spinner spinners[CPU_MAX + 1];
    struct thread *t[CPU_MAX + 1];
    u32 count = cpu_count + 1;
    begin();
    for (u32 i = 0; i < count; i++) {
        spinners[i] = (struct spinner){ PRIORITY_BATCH, i % cpu_count };
        expect(!kthread_create("test", spin, &spinners[i], &t[i]));
    }
    sleep_ms(10);
    for (u32 i = 0; i < count; i++)
        expect(!run_anywhere(t[i]));
    for (u32 round = 0; round < 3; round++) {
        u64 before[CPU_MAX + 1];
        for (u32 i = 0; i < count; i++)
            before[i] = cycles_had(t[i]);
        for (u32 i = 0; i < count; i++) {
            while (cycles_had(t[i]) - before[i] < sched_cycles.slice_batch)
                sleep_ms(1);
        }
    }
    WRITE_ONCE(stop, 1);
    wait_for(count);
    for (u32 i = 0; i < count; i++)
        thread_unref(t[i]);
}

// --- affinity and run queues ------------------------------------------------

static void check_cpu(void *arg UNUSED)
{
    for (u32 round = 0; round < 20; round++) {
        u32 cpu = test_random() % cpu_count;
        expect(!run_on(current, cpu));
        preempt_disable();
        expect(this_cpu()->id == cpu);
        preempt_enable();
        sched_yield();
    }
    expect(thread_set_affinity(current, &CPU_SET_EMPTY) == -EINVAL);
    report_done();
}

KERNEL_TEST(affinity_is_kept)
{
    reset();
    for (u32 i = 0; i < THREADS; i++)
        start(check_cpu, NULL);
    wait_for(THREADS);
}

// With the queue's lock held.
static void check_queue(struct run_queue *rq)
{
    u32 count = 0, bitmap = 0;
    u64 least = 0;
    for (u32 level = 0; level < PRIORITY_LEVELS; level++) {
        const struct thread *t;
        list_for_each(t, &rq->levels[level], run_node) {
            count++;
            bitmap |= 1u << level;
            expect(t->cpu == rq->cpu && t->priority == level);
            expect(t->state == THREAD_READY && t != rq->running);
            expect(t->competing == (level == PRIORITY_BATCH));
            if (level != PRIORITY_BATCH)
                continue;
            expect(t->virtual_time >= least);
            least = t->virtual_time;
        }
    }
    expect(count == rq->count && bitmap == rq->bitmap);
}

static void check_queues(void)
{
    for (u32 i = 0; i < cpu_count; i++) {
        struct run_queue *rq = run_queues[i];
        u32 flags = spin_lock_irq(&rq->lock);
        check_queue(rq);
        spin_unlock_irq(&rq->lock, flags);
    }
}

static void check_place(const struct cpu_set *set)
{
    preempt_disable();
    expect(cpu_set_has(set, this_cpu()->id));
    preempt_enable();
}

static struct cpu_set random_set(void)
{
    struct cpu_set set = cpu_set_of(test_random() % cpu_count);
    for (u32 i = 0; i < cpu_count; i++) {
        if (test_random() % 2)
            cpu_set_add(&set, i);
    }
    return set;
}

static void storm(void *arg)
{
    struct cpu_set set = cpu_set_below(cpu_count);
    become((u32)arg & 1 ? PRIORITY_BATCH : PRIORITY_INTERACTIVE);
    for (u32 i = 0; i < 60; i++) {
        switch (test_random() % 4) {
        case 0:
            set = random_set();
            expect(!thread_set_affinity(current, &set));
            break;
        case 1:
            sched_yield();
            break;
        case 2:
            thread_sleep_until(clock_now_ns() + test_random() % 300000,
                               WAIT_UNINTERRUPTIBLE);
            break;
        default:
            for (u32 n = test_random() % 20000; n; n--)
                barrier();
        }
        check_place(&set);
    }
    report_done();
}

KERNEL_TEST(sched_queues_survive_a_storm)
{
    u32 threads = 6 * cpu_count;
    begin();
    for (u32 i = 0; i < threads; i++)
        start(storm, (void *)i);
    while (READ_ONCE(done_count) < threads) {
        check_queues();
        sched_yield();
        test_relax(); // -icount: a turn for the other CPUs
    }
    wait_for(threads);
    check_queues();
}

// Threads on a run queue are migrated by a change of their affinity.
KERNEL_TEST(sched_waiting_threads_are_moved)
{
    static struct spinner spinners[MOVED];
    struct thread *t[MOVED];
    begin();
    for (u32 i = 0; i < MOVED; i++) {
        spinners[i] = (struct spinner){ PRIORITY_BATCH, 0 };
        expect(!kthread_create("test", spin, &spinners[i], &t[i]));
    }
    sleep_ms(20);
    for (u32 i = 0; i < 200; i++) {
        struct cpu_set set = random_set();
        expect(!thread_set_affinity(t[test_random() % MOVED], &set));
        if (i % 8 == 0)
            check_queues();
    }
    sleep_ms(20);
    check_queues();
    WRITE_ONCE(stop, 1);
    wait_for(MOVED);
    for (u32 i = 0; i < MOVED; i++)
        thread_unref(t[i]);
}

// --- accounting of waiting time ---------------------------------------------

static u64 irq_cycles(void)
{
    struct ledger_sums s;
    ledger_sums(this_cpu()->id, &s);
    return s.irq;
}

struct books {
    u64 irq, had, waited;
    u64 before, after; // TSC before and after the reads
};

static struct books own_books(void)
{
    struct books b;
    preempt_disable();
    b.before = rdtsc();
    b.irq = irq_cycles();
    b.had = cycles_had(current);
    b.waited = current->waited; // constant while the thread runs
    expect(thread_ready_ns(current) == clock_tsc_to_ns(current->waited));
    b.after = rdtsc();
    preempt_enable();
    return b;
}

// On one CPU and without sleep: elapsed time == run time + waiting time +
// interrupt time.
static bool time_is_accounted_for(void)
{
    struct books a = own_books(), b;
    u64 until = clock_now_ns() + 50 * NSEC_PER_MSEC;
    do {
        cpu_relax();
        b = own_books();
    } while (clock_now_ns() < until || b.waited == a.waited);
    u64 least = b.before - a.after, most = b.after - a.before;
    u64 counted = b.had - a.had + b.waited - a.waited;
    return counted <= most + most / 64 &&
           counted + b.irq - a.irq >= least - least / 64;
}

// (A virtual machine may be paused between the end of one account and the
// beginning of the next: then the test measures again.)
static void account_for_time(void *arg)
{
    bool found = false;
    expect(!run_on(current, (u32)arg));
    become(PRIORITY_BATCH);
    for (u32 i = 0; i < 50 && !found; i++)
        found = time_is_accounted_for();
    expect(found);
    report_done();
    while (READ_ONCE(done_count) < 3) // keeps the others waiting for this CPU
        cpu_relax();
    __atomic_add_fetch(&stop, 1, __ATOMIC_SEQ_CST);
    waitq_wake_all(&done_queue);
}

KERNEL_TEST(sched_ready_time_is_counted)
{
    begin();
    for (u32 i = 0; i < 3; i++)
        start(account_for_time, (void *)(cpu_count - 1));
    wait_event(&done_queue, READ_ONCE(stop) == 3, WAIT_UNINTERRUPTIBLE,
               WAIT_FOREVER);
}
