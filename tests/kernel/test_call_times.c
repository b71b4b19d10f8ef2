// Call tracing: times that add up and agree with the ledger, also of all
// functions, on and off under load.
#include "kernel/sched/stop_machine.h"
#include "tests/kernel/call_helpers.h"

// On each CPU, own time and tracing are the time of the trace.
static u32 cpus_that_differ(const struct report *r)
{
    u32 wrong = 0;
    u64 sum[CPU_MAX] = { 0 };
    for (u32 i = 0; i < r->info.records; i++) {
        const struct calls_node *n = &r->nodes[i];
        sum[n->cpu] += n->own + n->tracing;
        expect((s64)n->own >= 0 && (s64)n->tracing >= 0);
        expect((s64)n->blocked >= 0 && (s64)n->interrupted >= 0);
    }
    for (u32 i = 0; i < cpu_count; i++) {
        if (sum[i] != r->info.elapsed) {
            log_printf("calls: CPU %u: %llu of %llu cycles\n", i, sum[i],
                       r->info.elapsed);
            wrong++;
        }
    }
    return wrong;
}

static void short_life(void *arg UNUSED)
{
    kfree(kmalloc(50));
    report_done();
}

KERNEL_TEST(calls_times_add_up)
{
    u32 count, before = text_checksum(), short_lives = 0;
    u32 *functions = all_functions(&count);
    start_load();
    expect(!begin(CALLS_PATHS, functions, count, 0));
    for (u32 i = 0; i < 10; i++) {
        struct report r;
        start(short_life, NULL);
        short_lives++;
        sleep_ms(2);
        if (i == 5)
            call_trace_pause(true);
        if (i == 7)
            call_trace_pause(false);
        if (get(&r, i == 3)) {
            expect(!cpus_that_differ(&r));
            expect(!r.info.no_frames);
        }
        put(&r);
    }
    call_trace_end();
    end_load(short_lives);
    expect(text_checksum() == before);
}

struct books {
    u64 threads, interrupts;       // by the ledger
    u64 of_threads, of_interrupts; // by the nodes: own time and tracing
};

// At one instant, while the machine is stopped.
static void read_books(void *arg)
{
    struct books *b = arg;
    u64 now = rdtsc();
    call_stacks_charge(now, 1);
    for (u32 i = 0; i < cpu_count; i++, b++) {
        struct ledger_sums l;
        const struct call_cpu *c = &cpus[i]->calls;
        ledger_sums_at(i, now, &l);
        *b = (struct books){ l.user + l.kernel + l.idle, l.irq, 0, 0 };
        for (u32 n = 0; n < c->nodes_used; n++) {
            const struct call_node *node = &c->nodes[n], *root = node;
            while (root->parent != root)
                root = root->parent;
            *(root->function == CALLS_ROOT_INTERRUPTS ? &b->of_interrupts
                                                      : &b->of_threads) +=
                node->own + node->tracing;
        }
    }
    call_stacks_charge(now, -1);
}

static bool all_interrupted(const struct books *before,
                            const struct books *after)
{
    for (u32 i = 0; i < cpu_count; i++) {
        if (after[i].interrupts == before[i].interrupts)
            return false;
    }
    return true;
}

// What the nodes of threads and of interrupts have is what the ledger charged,
// over a time in which each CPU was interrupted.
KERNEL_TEST(calls_agree_with_the_ledger)
{
    static struct books before[CPU_MAX], after[CPU_MAX];
    u32 count;
    u32 *functions = all_functions(&count);
    start_load();
    expect(!begin(CALLS_PATHS, functions, count, 0));
    stop_machine(read_books, before);
    do {
        sleep_ms(5);
        stop_machine(read_books, after);
    } while (!all_interrupted(before, after));
    call_trace_end();
    end_load(0);
    for (u32 i = 0; i < cpu_count; i++) {
        expect(after[i].threads - before[i].threads ==
               after[i].of_threads - before[i].of_threads);
        expect(after[i].interrupts - before[i].interrupts ==
               after[i].of_interrupts - before[i].of_interrupts);
    }
}

// A thread that has ended exists while somebody holds a reference to it. It
// never runs again, but this is not counted as waiting.
KERNEL_TEST(calls_of_ended_threads)
{
    u32 count;
    u32 *functions = all_functions(&count);
    struct thread *t;
    struct report r;
    reset();
    expect(!begin(CALLS_PATHS, functions, count, 0));
    expect(!kthread_create("test", short_life, NULL, &t));
    wait_for(1);
    sleep_ms(1);
    if (get(&r, true))
        expect(!cpus_that_differ(&r));
    put(&r);
    sleep_ms(1);
    thread_unref(t);
    sleep_ms(1);
    if (get(&r, false))
        expect(!cpus_that_differ(&r));
    put(&r);
    call_trace_end();
}

#define WORK 2000u

static TRACED void works(u32 n)
{
    cpu_run_instructions(n);
}

static u64 time_of_work(void)
{
    u64 least = -1ull;
    for (u32 i = 0; i < 5; i++) {
        u32 flags = irq_save();
        u64 began = rdtsc();
        works(WORK);
        least = MIN(least, rdtsc() - began);
        irq_restore(flags);
    }
    return least;
}

// The function's own time, without what tracing adds to it, is what it takes
// without tracing. (The time without contains a call and an RDTSC.)
// test_calls.py compares them, in virtual time.
KERNEL_TEST(calls_times_are_without_tracing)
{
    u32 site = (u32)works;
    u64 plain = time_of_work();
    u32 caller, outside;
    struct report r;
    expect(!call_trace_measure(&caller, &outside));
    expect(!begin(CALLS_PATHS, list_of(&site, 1), 1, 0));
    u32 flags = irq_save();
    works(WORK);
    irq_restore(flags);
    if (get(&r, false)) {
        u64 own = SUM_OF(&r, works).own;
        log_printf("calls: %llu cycles, traced %llu, outside %u and %u\n",
                   plain, own, caller, outside);
        expect(SUM_OF(&r, works).calls == 1 && own > outside);
    }
    put(&r);
    call_trace_end();
}

// --- begin and end ----------------------------------------------------------

static void no_work(void *arg UNUSED, const struct trapframe *tf UNUSED)
{
}

KERNEL_TEST(calls_storm)
{
    u32 before = text_checksum(), short_lives = 0;
    struct timer *t = reserve_nmis();
    if (t)
        expect(!timer_start(t, TIMER_PERIODIC | TIMER_NMI, nmi_period(),
                            no_work, NULL));
    start_load();
    for (u32 i = 0; i < test_rounds(30); i++) {
        u32 count, mode = 1 + test_random() % 2;
        u32 *functions = all_functions(&count);
        struct calls_info info;
        int err = begin(mode, functions, count, test_random() % 20);
        expect(!err);
        for (u32 steps = test_random() % 4; !err && steps; steps--) {
            start(short_life, NULL);
            short_lives++;
            thread_sleep_until(clock_now_ns() +
                                   test_random() % 500 * NSEC_PER_USEC,
                               WAIT_UNINTERRUPTIBLE);
            if (test_random() % 2)
                calls_report(&info, NULL, -1u, true);
            if (test_random() % 4 == 0)
                call_trace_pause(test_random() % 2);
            struct report r;
            if (mode == CALLS_PATHS && get(&r, test_random() % 2))
                expect(!cpus_that_differ(&r));
            if (mode == CALLS_PATHS)
                put(&r);
        }
        if (!err)
            call_trace_end();
    }
    end_load(short_lives);
    if (t)
        timer_release(t);
    expect(text_checksum() == before);
}
