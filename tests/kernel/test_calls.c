// Call tracing: trees and counts of known calls, stacks that are unwound in a
// stub, costs.
#include "arch/nmi.h"
#include "arch/trap.h"
#include "arch/unwind.h"
#include "kernel/trace/record.h"
#include "tests/kernel/call_helpers.h"

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

static u32 *own_functions(u32 *count)
{
    u32 sites[] = { (u32)leaf,     (u32)middle, (u32)jumps,
                    (u32)recurses, (u32)result, (u32)top };
    *count = ARRAY_SIZE(sites);
    return list_of(sites, ARRAY_SIZE(sites));
}

// --- known calls ------------------------------------------------------------
KERNEL_TEST(calls_are_counted_by_path)
{
    u32 count, before = text_checksum();
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
    expect(text_checksum() == before);
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

static u32 landed_by[3];

static __attribute__((noinline, used)) void lands(void) // has no site
{
    u32 slot = frame_pointer() + 4, flags = irq_save();
    for (u32 i = 0; i < ARRAY_SIZE(landed_by); i++)
        landed_by[i] = call_trace_function(slot, i);
    irq_restore(flags);
}

// In assembler code: with sanitizers the compiler calls.
static TRACED __attribute__((naked, used)) void jumps_once(void)
{
    __asm__("jmp lands");
}

static TRACED __attribute__((naked, used)) void jumps_twice(void)
{
    __asm__("jmp jumps_once");
}

// The functions that have left by a jump are found, for those who unwind.
KERNEL_TEST(calls_by_jumps_are_known)
{
    u32 sites[] = { (u32)jumps_once, (u32)jumps_twice };
    lands(); // not traced
    expect(!landed_by[0]);
    expect(!begin(CALLS_PATHS, list_of(sites, ARRAY_SIZE(sites)),
                  ARRAY_SIZE(sites), 0));
    jumps_once();
    expect(landed_by[0] == (u32)jumps_once && !landed_by[1]);
    jumps_twice();
    expect(landed_by[0] == (u32)jumps_once);
    expect(landed_by[1] == (u32)jumps_twice && !landed_by[2]);
    call_trace_end();
}

// As if a thread was preempted at the beginning of a stub, and goes on when a
// trace of another kind runs.
void late_arc(void);
void late_path(void);
void late_enter(void);
asm(".pushsection .text\n"
    "late_arc: call trace_arc\n ret\n"
    "late_path: call trace_path\n ret\n"
    "late_enter: call trace_enter\n ret\n"
    ".popsection\n");

static struct trace_ring ring[CPU_MAX];

static int begin_events(u32 *functions, u32 count)
{
    static struct trace_ring *rings[CPU_MAX];
    static bool wake;
    struct calls_options o = { .size = sizeof(o),
                               .mode = CALLS_EVENTS,
                               .function_count = count };
    for (u32 i = 0; i < cpu_count; i++) {
        rings[i] = &ring[i];
        expect(trace_ring_alloc(&ring[i], 2 * PAGE_SIZE, &wake, false));
    }
    return call_trace_begin_events(&o, functions, rings);
}

KERNEL_TEST(calls_by_the_stub_of_another_trace)
{
    static const u32 modes[] = { CALLS_PATHS, CALLS_EVENTS, CALLS_ARCS,
                                 CALLS_PATHS };
    u32 count, before = text_checksum();
    for (u32 i = 0; i < ARRAY_SIZE(modes); i++) {
        u32 mode = modes[i];
        u32 *functions = own_functions(&count);
        expect(mode == CALLS_EVENTS ? !begin_events(functions, count)
                                    : !begin(mode, functions, count, 0));
        top();
        if (mode != CALLS_ARCS)
            late_arc();
        if (mode != CALLS_PATHS)
            late_path();
        if (mode != CALLS_EVENTS)
            late_enter();
        top();
        call_trace_end();
    }
    for (u32 i = 0; i < cpu_count; i++)
        trace_ring_free(&ring[i]);
    expect(text_checksum() == before);
}

static u32 count_arcs(u32 to, u32 *calls)
{
    u32 arcs = 0;
    *calls = 0;
    for (u32 cpu = 0; cpu < cpu_count; cpu++) {
        const struct call_cpu *c = &cpus[cpu]->calls;
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

// --- NMIs -------------------------------------------------------------------

static u32 in_stubs, nmis, unknown; // atomic
static u8 seen[512];                // offsets in the stubs

#define LONG_NMI 20000u // instructions

// The chain of what was interrupted has the function and its caller.
static void look(void *arg UNUSED, const struct trapframe *tf)
{
    u32 pcs[16], at = trap_pc(tf) - (u32)trace_path;
    bool is_cut, found = false;
    __atomic_add_fetch(&nmis, 1, __ATOMIC_RELAXED);
    if (trap_from_user(tf) || at >= (u32)(trace_code_end - trace_path))
        return;
    u32 n = unwind_kernel(tf, (u32)&tf->esp, pcs, ARRAY_SIZE(pcs), &is_cut);
    __atomic_add_fetch(&in_stubs, 1, __ATOMIC_RELAXED);
    seen[MIN(at, sizeof(seen) - 1)] = 1;
    const char *name = NULL;
    u32 offset;
    for (u32 i = 1; i < n && !found; i++) {
        name = ksym_lookup(moved_address(pcs[i]) - 1, &offset);
        found = name && !strcmp(name, "calls_are_unwound_anywhere_loop");
    }
    cpu_run_instructions(LONG_NMI);
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
    // At random distances: a period of the loop near a part of the NMIs' would
    // let them hit the same places again and again.
    while (READ_ONCE(nmis) < test_rounds(500) * cpu_count) {
        for (u32 n = test_random() % 50; n; n--)
            middle(2);
    }
    barrier();
}

KERNEL_TEST(calls_are_unwound_anywhere)
{
    u32 count, places = 0;
    u32 *functions = own_functions(&count);
    struct report r;
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
    if (get(&r, false)) // NMIs in stubs are no part of a call
        log_printf("calls: the longest of %llu took %llu cycles, long NMIs %u "
                   "instructions\n",
                   SUM_OF(&r, leaf, middle).calls,
                   SUM_OF(&r, leaf, middle).longest, LONG_NMI);
    put(&r);
    call_trace_end();
    for (u32 i = 0; i < sizeof(seen); i++)
        places += seen[i];
    log_printf("calls: %u NMIs in stubs, at %u places\n", in_stubs, places);
    expect(!unknown); // test_calls.py looks at the rest, in virtual time
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
