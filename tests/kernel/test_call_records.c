// Calls that are recorded as events, without returns (trace_call): each is in
// its CPU's ring, in order, or is counted as lost, whatever NMIs write there at
// any instruction of the stub.
#include "arch/nmi.h"
#include "arch/trap.h"
#include "arch/unwind.h"
#include "kernel/trace/record.h"
#include "tests/kernel/call_helpers.h"

#define RING_BYTES (2 * PAGE_SIZE)
#define NMI_TYPE 3u // of the records that NMIs write

static struct trace_ring ring[CPU_MAX];
static bool wake;
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

static TRACED u64 result(u32 a, u32 b, u32 c)
{
    return (u64)a << 32 | (b ^ c);
}

static bool begin_recording(void)
{
    static struct trace_ring *rings[CPU_MAX];
    u32 sites[] = { (u32)leaf, (u32)middle, (u32)result };
    struct calls_options o = { .size = sizeof(o),
                               .mode = CALLS_ENTRIES,
                               .function_count = ARRAY_SIZE(sites) };
    for (u32 i = 0; i < cpu_count; i++) {
        rings[i] = &ring[i];
        expect(trace_ring_alloc(&ring[i], RING_BYTES, &wake, false));
    }
    int err =
        call_trace_begin_events(&o, list_of(sites, ARRAY_SIZE(sites)), rings);
    expect(!err);
    return !err;
}

static void end_recording(void)
{
    call_trace_end();
    for (u32 i = 0; i < cpu_count; i++)
        trace_ring_free(&ring[i]);
}

// --- what is read -----------------------------------------------------------

static struct {
    u64 time;
    u32 calls, nmis, lost, bad;
    bool gap;         // records may be missing before the next call
    u32 expected;     // the next call's function; 0: any
    u32 left;         // calls of leaf that are due
    u32 number;       // of the last record of an NMI
    u32 loop, leaves; // entry of the function that calls middle; its argument
} seen;

static bool is_in(u32 pc, u32 function)
{
    u32 offset;
    pc = moved_address(pc) - 1;
    return ksym_lookup(pc, &offset) && pc - offset == function;
}

// middle, and then `leaves` calls of leaf by it, again and again.
static void take_call(u32 function, u32 caller)
{
    bool is_leaf = function == linked_address((u32)leaf);
    seen.calls++;
    seen.bad += !is_leaf && function != linked_address((u32)middle);
    seen.bad += !is_in(caller, is_leaf ? (u32)middle : seen.loop);
    if (!seen.gap)
        seen.bad += is_leaf ? !seen.left : seen.left;
    if (!is_leaf)
        seen.left = seen.leaves;
    else if (seen.left)
        seen.left--;
    seen.gap = false;
}

static void take_record(const u32 *record, u32 type, u32 words)
{
    const struct trace_lost *l = (const struct trace_lost *)record;
    u64 epoch = seen.time >> TRACE_TIME_BITS << TRACE_TIME_BITS, time;
    if (type == TRACE_R_PAD)
        return;
    time = epoch | TRACE_HEAD_TIME(*record);
    if (type == TRACE_R_TIME || type == TRACE_R_LOST)
        time = (u64)l->time.time[1] << 32 | l->time.time[0];
    seen.bad += time < seen.time;
    seen.time = time;
    if (type == TRACE_R_LOST) {
        seen.lost += l->count;
        seen.gap = true;
    } else if (type == TRACE_R_CALL) {
        seen.bad += words != sizeof(struct trace_call) / 4;
        take_call(record[1] - TRACE_CALL_OFFSET, record[2]);
    } else if (type == NMI_TYPE) {
        seen.bad +=
            words != 4 || record[2] != ~record[1] || record[1] <= seen.number;
        seen.number = record[1];
        seen.nmis++;
    } else {
        seen.bad += type != TRACE_R_TIME;
    }
}

static void drain(struct trace_ring *r)
{
    u32 bytes;
    for (;;) {
        const u32 *at = trace_ring_peek(r, RING_BYTES, &bytes);
        const u32 *end = at + bytes / 4;
        if (!bytes)
            return;
        for (; at < end; at += TRACE_HEAD_WORDS(*at))
            take_record(at, TRACE_HEAD_TYPE(*at), TRACE_HEAD_WORDS(*at));
        trace_ring_consume(r, bytes);
    }
}

// --- known calls ------------------------------------------------------------

static NOINLINE void call_middle(u32 times)
{
    for (u32 i = 0; i < times; i++)
        middle(seen.leaves);
    barrier();
}

static void expect_calls(u32 leaves, u32 loop)
{
    memset(&seen, 0, sizeof(seen));
    seen.leaves = leaves;
    seen.loop = loop;
}

KERNEL_TEST(calls_recorded_are_known)
{
    u32 before = text_checksum();
    expect_calls(3, (u32)call_middle);
    if (!begin_recording())
        return;
    preempt_disable(); // one CPU's ring
    struct trace_ring *r = &ring[this_cpu()->id];
    call_middle(10);
    drain(r);
    expect(!seen.bad && !seen.lost && seen.calls == 40 && !seen.left);
    // More than there is room for: the first ones are there, and the rest is
    // counted, before what follows.
    call_middle(500);
    drain(r);
    expect(!seen.bad && !seen.lost && seen.calls > RING_BYTES / 12 - 10);
    u32 lost = 2040 - seen.calls;
    expect(trace_ring_lost(r) == lost);
    seen.gap = true;
    seen.left = 0;
    call_middle(1);
    drain(r);
    preempt_enable();
    expect(!seen.bad && seen.lost == lost && seen.calls + lost == 2044);
    expect(result(1, 2, 4) == 0x100000006ull); // all registers are kept
    end_recording();
    expect(text_checksum() == before);
}

// --- NMIs -------------------------------------------------------------------

static u32 in_stub, nmis, written, unknown, here; // of CPU `here`
static u8 places[256];                            // offsets in the stub

// What was interrupted has the function and its caller in its chain; the ring
// takes a record at that place.
static void look(void *arg UNUSED, const struct trapframe *tf)
{
    u32 pcs[16], n, fields[3], at = trap_pc(tf) - (u32)trace_call, offset;
    bool is_cut, function = false, caller = false;
    if (this_cpu()->id != here)
        return;
    nmis++;
    fields[0] = ++written;
    fields[1] = ~fields[0];
    fields[2] = at;
    trace_put(&ring[here], NMI_TYPE, fields, sizeof(fields));
    if (trap_from_user(tf) || at >= (u32)(trace_exit - trace_call))
        return;
    in_stub++;
    places[MIN(at, sizeof(places) - 1)] = 1;
    n = unwind_kernel(tf, (u32)&tf->esp, pcs, ARRAY_SIZE(pcs), &is_cut);
    for (u32 i = 1; i < n; i++) {
        u32 pc = moved_address(pcs[i]) - 1;
        const char *name = ksym_lookup(pc, &offset);
        u32 start = pc - offset;
        function |= start == (u32)leaf || start == (u32)middle;
        caller |= name && !strcmp(name, "calls_are_recorded_anywhere_loop");
    }
    unknown += !function || !caller;
}

// Not static: `look` finds it by name.
void calls_are_recorded_anywhere_loop(u32 times);
NOINLINE void calls_are_recorded_anywhere_loop(u32 times)
{
    for (u32 i = 0; i < times; i++)
        middle(2);
    barrier();
}

KERNEL_TEST(calls_are_recorded_anywhere)
{
    u32 called = 0, seen_places = 0;
    struct timer *t = reserve_nmis();
    if (!t) {
        test_skip("no timer raises NMIs");
        return;
    }
    expect_calls(2, (u32)calls_are_recorded_anywhere_loop);
    in_stub = nmis = written = unknown = 0;
    memset(places, 0, sizeof(places));
    if (!begin_recording()) {
        timer_release(t);
        return;
    }
    preempt_disable();
    here = this_cpu()->id;
    expect(
        !timer_start(t, TIMER_PERIODIC | TIMER_NMI, nmi_period(), look, NULL));
    // Most rounds have room for all.
    while (READ_ONCE(in_stub) < 200 && READ_ONCE(nmis) < 4000) {
        u32 times = test_random() % (RING_BYTES / 36 * 5 / 4);
        calls_are_recorded_anywhere_loop(times);
        called += 3 * times;
        u32 lost = trace_ring_lost(&ring[here]);
        drain(&ring[here]);
        if (lost != seen.lost) // they precede the next record
            seen.gap = true;
    }
    preempt_enable();
    timer_release(t);
    drain(&ring[here]);
    u32 lost = trace_ring_lost(&ring[here]);
    end_recording();
    for (u32 i = 0; i < sizeof(places); i++)
        seen_places += places[i];
    log_printf("calls: recorded %u of %u, %u lost; %u NMIs in the stub, at %u "
               "places\n",
               seen.calls, called, lost, in_stub, seen_places);
    expect(!seen.bad && !unknown);
    expect(seen.calls + seen.nmis + lost == called + written);
    expect(lost && seen.lost <= lost && seen.calls > called / 2);
    expect(in_stub); // test_calls.py looks at the places, in virtual time
}

// --- what it costs ----------------------------------------------------------

#define MEASURED_CALLS 500u // a ring has room for them

static u64 time_of_calls(void)
{
    u32 flags = irq_save();
    leaf(); // the ring has a page
    u64 began = rdtsc();
    for (u32 i = 0; i < MEASURED_CALLS; i++)
        leaf();
    u64 cycles = rdtsc() - began;
    irq_restore(flags);
    return cycles;
}

// 2 cycles each under `tools/vm --icount 1`; tools/bench/run reads this. All
// instructions of the stub, opening a page included: the least of some rounds
// has no change of the time's upper bits.
KERNEL_TEST(calls_recorded_cost)
{
    u64 plain = time_of_calls(), traced = -1ull;
    if (!begin_recording())
        return;
    for (u32 i = 0; i < 5; i++) {
        traced = MIN(traced, time_of_calls());
        memset(&seen, 0, sizeof(seen));
        drain(&ring[this_cpu()->id]);
    }
    end_recording();
    log_printf("calls: one that is recorded takes %u instructions\n",
               (u32)((traced - plain) / 2 + MEASURED_CALLS / 2) /
                   MEASURED_CALLS);
}
