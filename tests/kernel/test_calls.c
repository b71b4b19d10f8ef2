// Call tracing: trees and counts of known calls, times that add up, all
// functions on and off under load, stacks that are unwound in a stub.
#include "arch/call_trace.h"
#include "arch/nmi.h"
#include "arch/text.h"
#include "arch/trap.h"
#include "arch/unwind.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/call_trace.h"
#include "kernel/sched/stop_machine.h"
#include "kernel/time/timer.h"
#include "kernel/trace/calls.h"
#include "lib/string.h"
#include "tests/kernel/thread_helpers.h"

// The tests' functions have no sites, but these.
#define TRACED NOINLINE __attribute__((patchable_function_entry(5)))
#define RECORDS_MOST 40000u

extern char text_start[], text_end[];

static u32 ran;

static TRACED void leaf(void)
{
    WRITE_ONCE(ran, ran + 1);
}

static TRACED void middle(u32 n)
{
    for (u32 i = 0; i < n; i++)
        leaf();
    barrier();
}

static TRACED void jumps(void) // a tail call
{
    WRITE_ONCE(ran, ran + 1);
    leaf();
}

static TRACED u32 recurses(u32 n)
{
    return n ? 1 + recurses(n - 1) * OPAQUE(1u) : 0;
}

static TRACED u64 result(u32 a, u32 b, u32 c)
{
    return (u64)a << 32 | (b ^ c);
}

static TRACED void top(void)
{
    middle(3);
    jumps();
    recurses(4);
    leaf();
    expect(result(1, 2, 4) == 0x100000006ull);
}

static u32 *list_of(u32 *sites, u32 count)
{
    u32 *list = kmalloc(count * sizeof(u32));
    for (u32 i = 1; i < count; i++) // ascending
        for (u32 j = i; j && sites[j] < sites[j - 1]; j--) {
            u32 site = sites[j];
            sites[j] = sites[j - 1];
            sites[j - 1] = site;
        }
    if (list)
        memcpy(list, sites, count * sizeof(u32));
    return list;
}

static u32 *own_functions(u32 *count)
{
    u32 sites[] = { (u32)leaf,     (u32)middle, (u32)jumps,
                    (u32)recurses, (u32)result, (u32)top };
    *count = ARRAY_SIZE(sites);
    return list_of(sites, ARRAY_SIZE(sites));
}

static u32 *all_functions(u32 *count)
{
    *count = (u32)(text_entries_end - text_entries_start);
    u32 *list = kmalloc(*count * sizeof(u32));
    if (list)
        memcpy(list, text_entries_start, *count * sizeof(u32));
    return list;
}

static int begin(u32 mode, u32 *functions, u32 count, u32 depth)
{
    struct calls_options o = {
        .size = sizeof(o),
        .mode = mode,
        .depth = depth,
        .function_count = count,
    };
    return functions ? call_trace_begin_with(&o, functions) : -1;
}

static u32 checksum(void)
{
    u32 sum = 0;
    for (const char *p = text_start; p < text_end; p++)
        sum = sum * 31 + (u8)*p;
    return sum;
}

struct report {
    struct calls_info info;
    u32 pages;
    struct calls_node *nodes;
};

static bool get(struct report *r, bool reset)
{
    r->pages = RECORDS_MOST * sizeof(*r->nodes) / PAGE_SIZE;
    r->nodes = vmap_alloc(r->pages, PROT_R | PROT_W, FRAME_BUFFER);
    if (r->nodes)
        calls_report(&r->info, r->nodes, RECORDS_MOST, reset);
    return r->nodes && r->info.records <= RECORDS_MOST;
}

static void put(struct report *r)
{
    vmap_free(r->nodes, r->pages);
}

// --- known calls ------------------------------------------------------------

// The sum of the records of a path, which is given innermost function first.
static struct calls_node sum_of(const struct report *r, const void *const *path)
{
    struct calls_node sum = { .calls = 0 };
    for (u32 i = 0; i < r->info.records; i++) {
        const struct calls_node *n = &r->nodes[i];
        const void *const *p = path;
        for (; *p && n->function == (u32)*p; p++)
            n = &r->nodes[n->parent];
        if (*p || n->function > CALLS_ROOTS)
            continue;
        sum.calls += r->nodes[i].calls;
        sum.own += r->nodes[i].own;
        sum.open += r->nodes[i].open;
        sum.longest = MAX(sum.longest, r->nodes[i].longest);
    }
    return sum;
}
#define SUM_OF(r, ...) sum_of(r, (const void *const[]){ __VA_ARGS__, NULL })
#define CALLS_OF(r, ...) ((u32)SUM_OF(r, __VA_ARGS__).calls)

KERNEL_TEST(calls_are_counted_by_path)
{
    u32 count, before = checksum();
    u32 *functions = own_functions(&count);
    struct report r;
    expect(!begin(CALLS_PATHS, functions, count, 0));
    for (u32 i = 0; i < 10; i++)
        top();
    leaf();
    if (get(&r, false)) {
        expect(CALLS_OF(&r, top) == 10);
        expect(CALLS_OF(&r, middle, top) == 10);
        expect(CALLS_OF(&r, leaf, middle, top) == 30);
        expect(CALLS_OF(&r, leaf, top) == 10);
        expect(CALLS_OF(&r, leaf) == 1);
        expect(CALLS_OF(&r, leaf, jumps, top) == 10);
        expect(CALLS_OF(&r, jumps, top) == 10);
        expect(CALLS_OF(&r, recurses, top) == 10);
        expect(CALLS_OF(&r, recurses, recurses, recurses, recurses, recurses,
                        top) == 10);
        expect(!SUM_OF(&r, top).open);
        expect(!r.info.overflow && !r.info.too_deep);
    }
    put(&r);
    call_trace_end();
    expect(checksum() == before);
}

KERNEL_TEST(calls_too_deep_are_counted)
{
    u32 count;
    u32 *functions = own_functions(&count);
    struct report r;
    expect(!begin(CALLS_PATHS, functions, count, 2));
    top();
    if (get(&r, false)) {
        expect(CALLS_OF(&r, middle, top) == 1);
        expect(!CALLS_OF(&r, leaf, middle, top));
        expect(r.info.too_deep == 3 + 1 + 4);
    }
    put(&r);
    call_trace_end();
}

static u32 count_arcs(u32 to, u32 *calls)
{
    u32 arcs = 0;
    *calls = 0;
    for (u32 cpu = 0; cpu < cpu_count; cpu++) {
        const struct call_cpu *c = &cpus[cpu].calls;
        for (u32 i = 0; i <= c->arc_mask / sizeof(struct call_arc); i++) {
            const struct call_arc *a = &c->all_arcs[i];
            arcs += a->to == to + TEXT_SITE;
            *calls += a->to == to + TEXT_SITE ? (u32)a->count : 0;
        }
    }
    return arcs;
}

// A compiler may make several call instructions, each an arc, of one.
KERNEL_TEST(calls_have_arcs)
{
    u32 count, calls;
    u32 *functions = own_functions(&count);
    expect(!begin(CALLS_ARCS, functions, count, 0));
    for (u32 i = 0; i < 10; i++)
        top();
    expect(count_arcs((u32)leaf, &calls) >= 3 && calls == 50);
    expect(count_arcs((u32)recurses, &calls) >= 2 && calls == 50);
    expect(count_arcs((u32)top, &calls) >= 1 && calls == 10);
    call_trace_end();
}

// --- times ------------------------------------------------------------------

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

static bool over; // atomic

// Calls, locks, sleeps, threads, page tables and interrupts.
static void load(void *arg UNUSED)
{
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        void *p = vmap_alloc(3, PROT_R | PROT_W, FRAME_BUFFER);
        if (p)
            vmap_free(p, 3);
        kfree(kmalloc(100));
        thread_sleep_until(clock_now_ns() + 50 * NSEC_PER_USEC,
                           WAIT_UNINTERRUPTIBLE);
        sched_yield();
    }
    report_done();
}

static void short_life(void *arg UNUSED)
{
    kfree(kmalloc(50));
    report_done();
}

static void start_load(void)
{
    reset();
    WRITE_ONCE(over, false);
    for (u32 i = 0; i < cpu_count * 2; i++)
        start(load, NULL);
}

static void end_load(u32 others)
{
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    wait_for(cpu_count * 2 + others);
}

KERNEL_TEST(calls_times_add_up)
{
    u32 count, before = checksum(), short_lives = 0;
    u32 *functions = all_functions(&count);
    start_load();
    expect(!begin(CALLS_PATHS, functions, count, 0));
    for (u32 i = 0; i < 10; i++) {
        struct report r;
        start(short_life, NULL);
        short_lives++;
        sleep_ms(2);
        if (i == 5)
            expect(!call_trace_pause(true));
        if (i == 7)
            expect(!call_trace_pause(false));
        if (get(&r, i == 3)) {
            expect(!cpus_that_differ(&r));
            expect(!r.info.no_frames);
        }
        put(&r);
    }
    call_trace_end();
    end_load(short_lives);
    expect(checksum() == before);
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
        const struct call_cpu *c = &cpus[i].calls;
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

// What the nodes of threads and of interrupts have is what the ledger charged.
KERNEL_TEST(calls_agree_with_the_ledger)
{
    static struct books before[CPU_MAX], after[CPU_MAX];
    u32 count;
    u32 *functions = all_functions(&count);
    start_load();
    expect(!begin(CALLS_PATHS, functions, count, 0));
    stop_machine(read_books, before);
    sleep_ms(5);
    stop_machine(read_books, after);
    call_trace_end();
    end_load(0);
    for (u32 i = 0; i < cpu_count; i++) {
        expect(after[i].threads - before[i].threads ==
               after[i].of_threads - before[i].of_threads);
        expect(after[i].interrupts - before[i].interrupts ==
               after[i].of_interrupts - before[i].of_interrupts);
        expect(after[i].interrupts > before[i].interrupts);
    }
}

// A thread that has ended is still there while somebody holds a reference. What
// it waits for ever is no thread's wait.
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

// --- begin, end, NMIs -------------------------------------------------------

// In the time of one CPU; checked kernels need most of it for an NMI.
static u64 nmi_period(void)
{
    return 300 * NSEC_PER_USEC * cpu_count;
}

static struct timer *reserve_nmis(void)
{
    struct timer *t;
    int err = timer_reserve(TIMER_PERIODIC | TIMER_NMI, nmi_period(),
                            nmi_period(), "a test", &t);
    return err ? NULL : t;
}

static u32 in_stubs, nmis, unknown; // atomic
static u8 seen[512];                // offsets in the stubs

// The chain of what was interrupted has the function and its caller.
static void look(void *arg UNUSED, const struct trapframe *tf)
{
    u32 pcs[16], at = trap_pc(tf) - (u32)trace_path;
    bool is_cut, found = false;
    __atomic_add_fetch(&nmis, 1, __ATOMIC_RELAXED);
    if (trap_from_user(tf) || at >= (u32)(trace_code_end - trace_path))
        return;
    u32 n = unwind_kernel(tf, pcs, ARRAY_SIZE(pcs), &is_cut);
    __atomic_add_fetch(&in_stubs, 1, __ATOMIC_RELAXED);
    seen[MIN(at, sizeof(seen) - 1)] = 1;
    const char *name = NULL;
    u32 offset;
    for (u32 i = 1; i < n && !found; i++) {
        name = ksym_lookup(pcs[i] - 1, &offset);
        found = name && !strcmp(name, "calls_are_unwound_anywhere_loop");
    }
    if (!found) {
        __atomic_add_fetch(&unknown, 1, __ATOMIC_RELAXED);
        log_printf("calls: at +%#x: %08x %08x %08x %08x\n", at, pcs[0],
                   n > 1 ? pcs[1] : 0, n > 2 ? pcs[2] : 0, n > 3 ? pcs[3] : 0);
    }
}

// Not static: `look` finds it by name.
void calls_are_unwound_anywhere_loop(void);
NOINLINE void calls_are_unwound_anywhere_loop(void)
{
    u32 n = 0;
    while (READ_ONCE(nmis) < 500 * cpu_count) {
        for (u32 i = 0; i < 20 + n % 7; i++)
            middle(2);
        n++;
    }
    barrier();
}

KERNEL_TEST(calls_are_unwound_anywhere)
{
    u32 count, places = 0;
    u32 *functions = own_functions(&count);
    struct timer *t = reserve_nmis();
    if (!t) {
        kfree(functions);
        test_skip("no timer raises NMIs");
        return;
    }
    in_stubs = nmis = unknown = 0;
    expect(!begin(CALLS_PATHS, functions, count, 0));
    preempt_disable(); // only this CPU's stubs are looked at
    expect(
        !timer_start(t, TIMER_PERIODIC | TIMER_NMI, nmi_period(), look, NULL));
    calls_are_unwound_anywhere_loop();
    preempt_enable();
    timer_release(t);
    call_trace_end();
    for (u32 i = 0; i < sizeof(seen); i++)
        places += seen[i];
    log_printf("calls: %u NMIs in stubs, at %u places\n", in_stubs, places);
    expect(!unknown); // test_calls.py looks at the rest, in virtual time
}

static void no_work(void *arg UNUSED, const struct trapframe *tf UNUSED)
{
}

#define ROUNDS 30u

KERNEL_TEST(calls_storm)
{
    u32 before = checksum(), short_lives = 0;
    struct timer *t = reserve_nmis();
    if (t)
        expect(!timer_start(t, TIMER_PERIODIC | TIMER_NMI, nmi_period(),
                            no_work, NULL));
    start_load();
    for (u32 i = 0; i < ROUNDS; i++) {
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
                expect(!call_trace_pause(test_random() % 2));
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
    expect(checksum() == before);
}

// --- what it costs ----------------------------------------------------------

#define MEASURED_CALLS 1000u

static u64 time_of_calls(void)
{
    u32 flags = irq_save();
    leaf(); // the node, or the arc, is there
    u64 began = rdtsc();
    for (u32 i = 0; i < MEASURED_CALLS; i++)
        leaf();
    u64 cycles = rdtsc() - began;
    irq_restore(flags);
    return cycles;
}

static u32 cost_of(u32 mode, u64 plain)
{
    u32 site = (u32)leaf;
    expect(!begin(mode, list_of(&site, 1), 1, 0));
    u64 traced = time_of_calls();
    call_trace_end();
    // 2 cycles each under `tools/vm --icount 1`; the NOP is not executed.
    return (u32)((traced - plain) / 2 + MEASURED_CALLS) / MEASURED_CALLS;
}

// (tools/bench/run reads this.)
KERNEL_TEST(calls_cost)
{
    u64 plain = time_of_calls();
    u32 arc = cost_of(CALLS_ARCS, plain), path = cost_of(CALLS_PATHS, plain);
    log_printf("calls: an arc takes %u, an entry and a return %u "
               "instructions\n",
               arc, path);
}
