// The trace: records under NMIs at any place, losses that are counted where
// they are, calls that nest, everything on and off under load.
#include "arch/nmi.h"
#include "arch/text.h"
#include "arch/trap.h"
#include "kernel/mm/heap.h"
#include "kernel/profile/trace_private.h"
#include "kernel/sched/stop_machine.h"
#include "kernel/time/timer.h"
#include "kernel/trace/point.h"
#include "lib/string.h"
#include "tests/kernel/point_helpers.h"

#define TRACED NOINLINE __attribute__((patchable_function_entry(5)))
#define RING_BYTES (4 * PAGE_SIZE)

// --- what a reader checks ---------------------------------------------------

struct seen {
    u64 time; // of the last record; 0: none
    bool known;
    u32 events, lost, bad;
    u32 by_type[64];
    void (*each)(struct seen *s, u32 type, const u32 *record, u32 words);
    void *arg;
};

static void see_time(struct seen *s, u32 type, const u32 *record, u32 words)
{
    const struct trace_lost *l = (const struct trace_lost *)record;
    u64 time = (u64)l->time.time[1] << 32 | l->time.time[0];
    s->bad += time < s->time || words != (type == TRACE_R_LOST ? 5 : 4);
    s->time = time;
    s->known = true;
    if (type == TRACE_R_LOST) {
        s->lost += l->count;
        s->bad += !l->count;
    }
}

static void see(struct seen *s, const u32 *record)
{
    u32 type = TRACE_HEAD_TYPE(*record), words = TRACE_HEAD_WORDS(*record);
    if (type == TRACE_R_PAD)
        return;
    if (type == TRACE_R_TIME || type == TRACE_R_LOST) {
        see_time(s, type, record, words);
        return;
    }
    u64 time = (s->time >> TRACE_TIME_BITS << TRACE_TIME_BITS) |
               TRACE_HEAD_TIME(*record);
    s->bad += !s->known || time < s->time;
    s->time = time;
    s->events++;
    s->by_type[type]++;
    if (s->each)
        s->each(s, type, record, words);
}

// Reads all that is there.
static void drain(struct seen *s, struct trace_ring *r)
{
    u32 bytes;
    for (;;) {
        const u32 *at = trace_ring_peek(r, RING_BYTES, &bytes);
        const u32 *end = at + bytes / 4;
        if (!bytes)
            return;
        for (; at < end; at += TRACE_HEAD_WORDS(*at))
            see(s, at);
        trace_ring_consume(r, bytes);
    }
}

// --- NMIs -------------------------------------------------------------------

static struct {
    struct trace_ring ring;
    u32 cpu;
    bool wake, inside;          // a record is being written
    u32 numbers[2], written[2]; // by: ordinary code, NMIs
    u32 nested;                 // NMIs in the middle of a record
    u32 since_new;              // those since the last one at a new address
    u32 places, place[512];     // the addresses that they interrupted
    u32 read[2];
} nmi_test;

// The fields follow from the number; numbers of one writer ascend.
static void put_numbered(u32 writer)
{
    u32 n = nmi_test.numbers[writer]++;
    u32 fields[7] = { n, ~n, n * 3, n ^ 0x5555, writer, n + 1, n + 2 };
    bool done = writer  ? trace_put(&nmi_test.ring, 3, fields, sizeof(fields))
                : n & 1 ? trace_put(&nmi_test.ring, 2, fields, 20)
                        : trace_put(&nmi_test.ring, 2, fields, sizeof(fields));
    nmi_test.written[writer] += done;
}

static void note_place(u32 pc)
{
    nmi_test.nested++;
    nmi_test.since_new++;
    for (u32 i = 0; i < nmi_test.places; i++) {
        if (nmi_test.place[i] == pc)
            return;
    }
    if (nmi_test.places == ARRAY_SIZE(nmi_test.place))
        return;
    nmi_test.place[nmi_test.places++] = pc;
    nmi_test.since_new = 0;
}

static void on_nmi(void *arg UNUSED, const struct trapframe *tf)
{
    if (this_cpu()->id != nmi_test.cpu)
        return;
    if (READ_ONCE(nmi_test.inside))
        note_place(trap_pc(tf));
    for (u32 i = 0; i < 3; i++)
        put_numbered(1);
}

static void check_numbered(struct seen *s, u32 type, const u32 *record,
                           u32 words)
{
    u32 n = record[1], writer = type == 3;
    s->bad += type != 2 && type != 3;
    s->bad += words != (writer || !(n & 1) ? 8u : 6u);
    s->bad += record[2] != ~n || record[3] != n * 3 ||
              record[4] != (n ^ 0x5555) || record[5] != writer;
    s->bad += words == 8 && (record[6] != n + 1 || record[7] != n + 2);
    s->bad += n < nmi_test.read[writer];
    nmi_test.read[writer] = n + 1;
}

// As many as test_random says, with the reader between them.
static void write_and_read(struct seen *s)
{
    for (u32 n = test_random() % 1000; n; n--) {
        u32 flags = irq_save();
        WRITE_ONCE(nmi_test.inside, true);
        put_numbered(0);
        WRITE_ONCE(nmi_test.inside, false);
        irq_restore(flags);
    }
    drain(s, &nmi_test.ring);
}

KERNEL_TEST(trace_records_are_whole)
{
    struct timer *t;
    struct seen s = { .each = check_numbered };
    u64 period = 100 * NSEC_PER_USEC * cpu_count;
    memset(&nmi_test, 0, sizeof(nmi_test));
    if (timer_reserve(TIMER_PERIODIC | TIMER_NMI, period, period, "a test",
                      &t)) {
        test_skip("no timer raises NMIs");
        return;
    }
    expect(trace_ring_alloc(&nmi_test.ring, RING_BYTES, &nmi_test.wake, false));
    preempt_disable();
    nmi_test.cpu = this_cpu()->id;
    expect(!timer_start(t, TIMER_PERIODIC | TIMER_NMI, period, on_nmi, NULL));
    // At all instructions of a record, as far as 1,000 NMIs in a row can tell.
    // (In real time QEMU interrupts only the first of several.)
    while (READ_ONCE(nmi_test.since_new) < test_rounds(1000))
        write_and_read(&s);
    timer_stop(t);
    preempt_enable();
    timer_release(t);
    drain(&s, &nmi_test.ring);
    for (u32 i = 0; i < 3; i++) // what was lost is told on the next page
        write_and_read(&s);
    u32 written = nmi_test.written[0] + nmi_test.written[1];
    u32 all = nmi_test.numbers[0] + nmi_test.numbers[1];
    log_printf("trace: %u records, %u lost, %u NMIs in the middle of one, at "
               "%u instructions\n",
               written, all - written, nmi_test.nested, nmi_test.places);
    expect(!s.bad);
    expect(s.events == written && nmi_test.ring.recorded == written);
    expect(trace_ring_lost(&nmi_test.ring) == all - written);
    expect(written < all && s.lost <= all - written);
    expect(nmi_test.written[1] && s.time);
    trace_ring_free(&nmi_test.ring);
}

// --- losses -----------------------------------------------------------------

KERNEL_TEST(trace_losses_are_told_at_their_place)
{
    static struct trace_ring ring;
    struct seen s = { .time = 0 };
    bool wake = false;
    u32 put = 0, lost = 0;
    expect(trace_ring_alloc(&ring, RING_BYTES, &wake, false));
    u32 flags = irq_save();
    while (!lost || lost < 10) {
        u32 fields[4] = { put };
        if (trace_put(&ring, 1, fields, sizeof(fields)))
            put++;
        else
            lost++;
    }
    expect(wake);
    drain(&s, &ring);
    expect(s.events == put && !s.lost && !s.bad);
    expect(put > RING_BYTES / 20 - 40 && put < RING_BYTES / 20);
    expect(trace_put(&ring, 1, (u32[4]){ 0 }, 16));
    drain(&s, &ring);
    irq_restore(flags);
    expect(s.events == put + 1 && s.lost == 10 && !s.bad);
    expect(trace_ring_lost(&ring) == 10);
    trace_ring_free(&ring);
}

// --- a writer that is held up -----------------------------------------------

static struct {
    bool inside, asked, answered, early;
} slow;

// As between reading a record's time and storing it.
static void write_slowly(void *arg UNUSED)
{
    expect(!run_on(current, 1));
    u32 flags = irq_save();
    WRITE_ONCE(slow.inside, true);
    while (!READ_ONCE(slow.asked))
        cpu_relax();
    u64 end = rdtsc() + clock_tsc_hz() / 1000;
    while (rdtsc() < end && !READ_ONCE(slow.answered))
        cpu_relax();
    slow.early = READ_ONCE(slow.answered);
    irq_restore(flags);
    report_done();
}

KERNEL_TEST(trace_waits_for_records_that_are_begun)
{
    struct cpu_set affinity = current->affinity;
    if (cpu_count < 2) {
        test_skip("one CPU");
        return;
    }
    reset();
    memset(&slow, 0, sizeof(slow));
    expect(!run_on(current, 0));
    start(write_slowly, NULL);
    while (!READ_ONCE(slow.inside))
        sleep_ms(1);
    WRITE_ONCE(slow.asked, true);
    trace_complete_until();
    WRITE_ONCE(slow.answered, true);
    wait_for(1);
    thread_set_affinity(current, &affinity);
    expect(!slow.early);
}

// --- sessions ---------------------------------------------------------------

static struct waitq readers = WAITQ_INIT(readers, "test");
static u32 ran;

static TRACED void leaf(void)
{
    WRITE_ONCE(ran, ran + 1);
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

static TRACED void top(void)
{
    for (u32 i = 0; i < 3; i++)
        leaf();
    jumps();
    recurses(4);
    barrier();
}

static u32 *own_functions(u32 *count)
{
    u32 sites[] = { (u32)leaf, (u32)jumps, (u32)recurses, (u32)top };
    u32 *list = kmalloc(sizeof(sites));
    *count = ARRAY_SIZE(sites);
    for (u32 i = 1; i < *count; i++) // ascending
        for (u32 j = i; j && sites[j] < sites[j - 1]; j--) {
            u32 site = sites[j];
            sites[j] = sites[j - 1];
            sites[j - 1] = site;
        }
    if (list)
        memcpy(list, sites, sizeof(sites));
    return list;
}

static u32 *all_functions(u32 *count)
{
    *count = (u32)(text_entries_end - text_entries_start);
    u32 *list = kmalloc(*count * sizeof(u32));
    if (list)
        memcpy(list, text_entries_start, *count * sizeof(u32));
    return list;
}

static u32 calls_only; // of trace_options, if there are functions

static struct trace_session *begin(u32 points, u32 *functions, u32 count,
                                   u32 ring_bytes)
{
    struct stream *s = NULL;
    struct trace_options o = {
        .size = sizeof(o),
        .points = points,
        .ring_bytes = ring_bytes,
        .function_count = count,
        .calls_only = calls_only,
    };
    int err = trace_session_begin_with(&o, functions, &readers, &s);
    expect(!err);
    return err ? NULL : container_of(s, struct trace_session, stream);
}

static void end(struct trace_session *s)
{
    s->stream.kind->end(&s->stream);
}

// A stack of calls, as a reader has it.
struct stack {
    struct {
        u32 function, mark;
    } open[64];
    u32 depth, calls[4], exits;
};

static u32 index_of(u32 function)
{
    function = moved_address(function);
    return function == (u32)leaf    ? 0
           : function == (u32)jumps ? 1
           : function == (u32)top   ? 2
                                    : 3;
}

static void follow(struct seen *s, u32 type, const u32 *record, u32 words)
{
    struct stack *k = s->arg;
    if (type == TRACE_R_ENTRY) {
        s->bad += words != 3 || k->depth == ARRAY_SIZE(k->open) ||
                  (k->depth && k->open[k->depth - 1].mark < record[2]);
        k->calls[index_of(record[1])]++;
        k->open[k->depth].function = record[1];
        k->open[k->depth++].mark = record[2];
    } else if (type == TRACE_R_EXIT) {
        s->bad += words != 4 || !k->depth ||
                  k->open[k->depth - 1].function != record[1];
        s->bad += record[3]; // no call took so long
        k->depth -= k->depth > 0;
        k->exits++;
    }
}

KERNEL_TEST(trace_of_known_calls)
{
    u32 count, before = text_checksum();
    u32 *functions = own_functions(&count);
    struct stack k = { .depth = 0 };
    struct seen s = { .each = follow, .arg = &k };
    struct trace_session *t = begin(0, functions, count, MIB(1));
    if (!t)
        return;
    preempt_disable(); // one CPU's records
    for (u32 i = 0; i < 100; i++)
        top();
    drain(&s, &t->target.cpu[this_cpu()->id].ring);
    preempt_enable();
    end(t);
    expect(text_checksum() == before);
    expect(!s.bad && !s.lost && !k.depth);
    expect(k.calls[0] == 400 && k.calls[1] == 100 && k.calls[2] == 100);
    expect(k.calls[3] == 500 && k.exits == 1100 && s.events == 2200);
}

// By CPU; too large for a stack.
static struct seen *forget(void)
{
    static struct seen all[CPU_MAX];
    memset(all, 0, sizeof(all));
    return all;
}

// Each interrupt has a begin and an end.
KERNEL_TEST(trace_counts_interrupts_in_pairs)
{
    struct seen *s = forget();
    struct trace_session *t =
        begin(1u << TRACE_irq_enter | 1u << TRACE_irq_exit, NULL, 0, MIB(1));
    if (!t)
        return;
    sleep_ms(20);
    stream_pause(&t->stream, true);
    u32 all = 0;
    for (u32 i = 0; i < cpu_count; i++) {
        drain(&s[i], &t->target.cpu[i].ring);
        u32 *n = s[i].by_type;
        // One may have begun before the trace, and one may be its end.
        expect(n[TRACE_irq_enter] + 1 >= n[TRACE_irq_exit] &&
               n[TRACE_irq_exit] + 1 >= n[TRACE_irq_enter]);
        expect(!s[i].bad && !s[i].lost);
        all += n[TRACE_irq_enter];
    }
    expect(all);
    end(t);
}

// --- storm ------------------------------------------------------------------

static bool over;

static void load(void *arg UNUSED)
{
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        kfree(kmalloc(100));
        thread_sleep_until(clock_now_ns() + 100 * NSEC_PER_USEC,
                           WAIT_UNINTERRUPTIBLE);
    }
    report_done();
}

static void no_work(void *arg UNUSED, const struct trapframe *tf UNUSED)
{
}

KERNEL_TEST(trace_storm)
{
    u32 before = text_checksum(), events = 0, lost = 0, bad = 0, rounds = 0;
    u64 period = 300 * NSEC_PER_USEC * cpu_count;
    struct timer *t = NULL;
    if (timer_reserve(TIMER_PERIODIC | TIMER_NMI, period, period, "a test", &t))
        t = NULL;
    if (t)
        expect(
            !timer_start(t, TIMER_PERIODIC | TIMER_NMI, period, no_work, NULL));
    reset();
    WRITE_ONCE(over, false);
    for (u32 i = 0; i < cpu_count * 2; i++)
        start(load, NULL);
    for (; rounds < test_rounds(20) || events <= 1000; rounds++) {
        struct seen *s = forget();
        u32 count;
        u32 *functions = all_functions(&count);
        calls_only = test_random() % 2;
        struct trace_session *other =
            begin(test_random() & TRACE_ALL_POINTS, NULL, 0, 0);
        struct trace_session *trace =
            begin(test_random() & TRACE_ALL_POINTS, functions, count,
                  RING_BYTES << test_random() % 4);
        for (u32 steps = test_random() % 6; trace && steps; steps--) {
            thread_sleep_until(clock_now_ns() +
                                   test_random() % 300 * NSEC_PER_USEC,
                               WAIT_UNINTERRUPTIBLE);
            if (test_random() % 8 == 0 && stream_measures(&trace->stream))
                stream_pause(&trace->stream, true);
            for (u32 c = 0; c < cpu_count; c++)
                drain(&s[c], &trace->target.cpu[c].ring);
        }
        if (other)
            end(other);
        if (trace && stream_measures(&trace->stream))
            stream_pause(&trace->stream, true);
        for (u32 c = 0; trace && c < cpu_count; c++) {
            drain(&s[c], &trace->target.cpu[c].ring);
            events += s[c].events;
            lost += s[c].lost;
            bad += s[c].bad;
            expect(trace->target.cpu[c].ring.recorded == s[c].events);
        }
        if (trace)
            end(trace);
    }
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    wait_for(cpu_count * 2);
    if (t)
        timer_release(t);
    calls_only = 0;
    log_printf("trace: %u events, %u lost, in %u rounds\n", events, lost,
               rounds);
    expect(!bad);
    expect(text_checksum() == before);
}

// --- what it costs ----------------------------------------------------------

#define MEASURED 1000u

static u64 time_of_calls(void)
{
    u32 flags = irq_save();
    leaf();
    u64 began = rdtsc();
    for (u32 i = 0; i < MEASURED; i++)
        leaf();
    u64 cycles = rdtsc() - began;
    irq_restore(flags);
    return cycles;
}

static u64 time_of_points(bool real)
{
    u32 flags = irq_save();
    u64 began = rdtsc();
    for (u32 i = 0; i < MEASURED; i++) {
        barrier();
        if (real)
            TRACE(lock_contended, .lock = i, .caller = 2, .cycles = 3);
    }
    u64 cycles = rdtsc() - began;
    irq_restore(flags);
    return cycles;
}

// 2 cycles each under `tools/vm --icount 1`.
static u32 instructions(u64 with, u64 without)
{
    return (u32)((with - without) / 2 + MEASURED / 2) / MEASURED;
}

// (tools/bench/run reads this.)
KERNEL_TEST(trace_cost)
{
    u64 nothing = time_of_points(false), off = time_of_points(true);
    u64 plain = time_of_calls(), on = 0, calls = 0;
    u32 count;
    u32 *functions = own_functions(&count);
    struct trace_session *t =
        begin(1u << TRACE_lock_contended, functions, count, MIB(1));
    if (!t)
        return;
    on = time_of_points(true);
    calls = time_of_calls();
    expect(!trace_ring_lost(&t->target.cpu[this_cpu()->id].ring));
    end(t);
    log_printf("trace: an event that is off takes %u, one of 16 bytes %u, an "
               "entry and a return %u instructions\n",
               instructions(off, nothing), instructions(on, nothing),
               instructions(calls, plain));
}
