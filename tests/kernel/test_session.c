// Profiling sessions: their counters, and that they leak nothing.

#include "tests/kernel/test.h"

#include "arch/nmi.h"
#include "kernel/base/errno.h"
#include "kernel/base/providers.h"
#include "kernel/mm/frame.h"
#include "kernel/profile/sample.h"
#include "kernel/stream/stream.h"
#include "kernel/task/task.h"
#include "kernel/time/ledger.h"
#include "lib/string.h"
#include "tests/kernel/sample_helpers.h"

static struct waitq readers = WAITQ_INIT(readers, "test");

static struct sprofile_options options(u32 hz)
{
    return (struct sprofile_options){ .size = sizeof(struct sprofile_options),
                                      .rate_hz = hz };
}

static void busy(u64 ns)
{
    u64 end = clock_now_ns() + ns;
    while (clock_now_ns() < end)
        cpu_relax();
}

KERNEL_TEST(session_samples_the_kernel)
{
    struct sprofile_options o = options(1000);
    struct stream *s;
    if (!expect_begun(session_begin(&kernel_task, &o, &readers, &s)))
        return;
    struct sprofile_info i;
    do { // on a busy host ticks may be late
        busy(NSEC_PER_MSEC);
        session_info(s, &i);
    } while (i.taken < 10);
    session_end(s);
    expect(i.user == 0);
    expect(i.taken == i.kernel + i.idle);
    expect(i.lost == 0);
    expect(i.source[0]);
    expect(i.rate_hz == 1000 || i.rate_hz == 1024); // the RTC has powers of 2
    expect(i.cpus == cpu_count);
}

struct ledger_times {
    u64 kernel_task, idle, awake; // TSC cycles; awake: neither user nor idle
};

static struct ledger_times times_now(void)
{
    struct ledger_times t = { 0 };
    u64 user;
    task_times(&kernel_task, &user, &t.kernel_task);
    for (u32 i = 0; i < cpu_count; i++) {
        struct ledger_sums all;
        ledger_sums(i, &all);
        t.idle += all.idle;
        t.awake += all.elapsed - all.user - all.idle;
    }
    return t;
}

// A session's times are those that pass between its begin and its info.
KERNEL_TEST(session_reports_the_times_of_the_ledger)
{
    struct task *targets[] = { &kernel_task, NULL };
    for (u32 n = 0; n < ARRAY_SIZE(targets); n++) {
        struct sprofile_options o = options(1000);
        struct stream *s;
        struct sprofile_info i;
        struct ledger_times before = times_now();
        if (!expect_begun(session_begin(targets[n], &o, &readers, &s)))
            return;
        struct ledger_times begun = times_now();
        busy(2 * NSEC_PER_MSEC);
        thread_sleep_until(clock_now_ns() + 2 * NSEC_PER_MSEC,
                           WAIT_UNINTERRUPTIBLE);
        struct ledger_times done = times_now();
        session_info(s, &i);
        struct ledger_times after = times_now();
        session_end(s);
        expect(!i.user_cycles);
        if (targets[n]) {
            expect(i.kernel_cycles >= done.kernel_task - begun.kernel_task);
            expect(i.kernel_cycles <= after.kernel_task - before.kernel_task);
            expect(!i.irq_cycles && !i.idle_cycles);
            continue;
        }
        u64 passed = after.idle - before.idle + after.awake - before.awake;
        expect(i.idle_cycles >= done.idle - begun.idle);
        expect(i.kernel_cycles + i.irq_cycles + i.idle_cycles + i.tool_cycles <=
               passed);
    }
}

KERNEL_TEST(session_that_is_paused_takes_nothing)
{
    struct sprofile_options o = options(5000);
    struct stream *s;
    struct sprofile_info before, after;
    if (!expect_begun(session_begin(&kernel_task, &o, &readers, &s)))
        return;
    stream_pause(s, true);
    session_info(s, &before);
    busy(5 * NSEC_PER_MSEC);
    session_info(s, &after);
    expect(before.taken == after.taken);
    expect(before.elapsed_ns == after.elapsed_ns);
    expect(before.expected == after.expected);
    stream_pause(s, false);
    do {
        busy(NSEC_PER_MSEC);
        session_info(s, &after);
    } while (after.taken == before.taken);
    session_end(s);
}

KERNEL_TEST(session_overflow_is_counted)
{
    struct sprofile_options o = options(20000);
    o.ring_bytes = 1; // rounded up to a page
    struct stream *s;
    struct sprofile_info i;
    if (!expect_begun(session_begin(&kernel_task, &o, &readers, &s)))
        return;
    // More samples than a ring holds: the rest are counted as lost.
    do {
        busy(NSEC_PER_MSEC);
        session_info(s, &i);
    } while (i.taken < 1000 * cpu_count);
    expect(stream_readable(s));
    expect(i.lost > 0);
    session_info(s, &i);
    session_end(s);
    expect(i.lost < i.taken);
}

static u32 all_unclaimed(void)
{
    u32 sum = 0;
    for (u32 i = 0; i < cpu_count; i++)
        sum += nmi_unclaimed(i);
    return sum;
}

// Samples the last CPU, nearly always with interrupts off. The interrupt of no
// source is delivered there first.
static void sample_with_interrupts_off(const char *source, bool seen)
{
    struct sprofile_options o = options(1000);
    struct sprofile_info i;
    struct stream *s;
    strlcpy(o.source, source, sizeof(o.source));
    if (!expect_begun_by(source, session_begin(&kernel_task, &o, &readers, &s)))
        return;
    do {
        u32 flags = irq_save();
        busy(3 * NSEC_PER_MSEC);
        irq_restore(flags);
        session_info(s, &i);
    } while (seen ? i.irqs_off < 3 : i.taken + i.missed < 20);
    session_end(s);
    expect(seen || !i.irqs_off);
}

KERNEL_TEST(session_each_source_sees_what_it_says)
{
    u32 unclaimed = all_unclaimed();
    struct cpu_set affinity = current->affinity;
    expect(!run_on(current, cpu_count - 1));
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        if (!(*s)->point && !(*s)->why_not(*s))
            sample_with_interrupts_off((*s)->name, (*s)->nmi);
    }
    thread_set_affinity(current, &affinity);
    expect(all_unclaimed() == unclaimed);
}

KERNEL_TEST(session_bad_options_are_refused)
{
    struct stream *s;
    struct sprofile_options o = options(1000);
    o.size = 4;
    expect(session_begin(NULL, &o, &readers, &s) == -EINVAL);
    o = options(1000);
    o.flags = 0x80000000;
    expect(session_begin(NULL, &o, &readers, &s) == -EINVAL);
    static const u32 sizes[] = { 4, SPROFILE_DEEP_LEAST - 8,
                                 SPROFILE_DEEP_LEAST + 4,
                                 SPROFILE_DEEP_MOST + 8 };
    for (u32 i = 0; i < ARRAY_SIZE(sizes); i++) {
        o = options(1000);
        o.flags = SPROFILE_O_STACKS | SPROFILE_O_DEEP;
        o.stack_bytes = sizes[i];
        expect(session_begin(NULL, &o, &readers, &s) == -EINVAL);
    }
    o = options(1000);
    o.stack_bytes = SPROFILE_DEEP_BYTES; // but not asked for
    expect(session_begin(NULL, &o, &readers, &s) == -EINVAL);
    o = options(1000);
    memset(o.source, 'x', sizeof(o.source));
    expect(session_begin(NULL, &o, &readers, &s) == -EINVAL);
    strlcpy(o.source, "nonesuch", sizeof(o.source));
    expect(session_begin(NULL, &o, &readers, &s) == -ENODEV);
    o = options(1000);
    strlcpy(o.event, "cycle", sizeof(o.event));
    expect(session_begin(NULL, &o, &readers, &s) == -ENOENT);
}

KERNEL_TEST(sessions_are_limited_and_leave_nothing)
{
    static struct stream *s[20];
    struct sprofile_options o = options(1000);
    struct frame_stats before, after;
    o.ring_bytes = PAGE_SIZE; // there is room for the rings of all CPUs
    // The first round fills caches and is not measured.
    for (u32 round = 0; round < 2; round++) {
        u32 n = 0;
        frame_stats(&before);
        while (n < ARRAY_SIZE(s) && !session_begin(NULL, &o, &readers, &s[n]))
            n++;
        expect(n == 16);
        while (n)
            session_end(s[--n]);
        frame_stats(&after);
    }
    expect(after.by_use[FRAME_BUFFER] == before.by_use[FRAME_BUFFER]);
}

// --- sessions in the sysinfo tree -------------------------------------------

struct seen {
    u32 count;
    struct sysinfo_session last;
};

static void see(const struct sysinfo_session *record, void *arg)
{
    struct seen *seen = arg;
    seen->count++;
    seen->last = *record;
}

KERNEL_TEST(sessions_are_notified_while_they_live)
{
    struct sprofile_options o = options(1000);
    struct sysinfo_sampling before, during, after;
    struct sprofile_info info;
    struct seen seen = { 0 };
    struct stream *s;
    session_totals(&before);
    if (!expect_begun(session_begin(&kernel_task, &o, &readers, &s)))
        return;
    do {
        busy(NSEC_PER_MSEC);
        session_info(s, &info);
    } while (info.taken < 10);
    sessions_each(see, &seen);
    expect(seen.count == before.sessions + 1);
    expect(seen.last.owner == current_task()->id);
    expect(seen.last.target == kernel_task.id && seen.last.targets == 1);
    expect(!strcmp(seen.last.state, "taking"));
    expect(!strcmp(seen.last.source, info.source));
    expect(seen.last.rate == info.rate_hz && seen.last.elapsed);
    expect(seen.last.taken >= info.taken);
    expect(seen.last.used && seen.last.used <= seen.last.room);
    stream_pause(s, true);
    sessions_each(see, &seen);
    expect(!strcmp(seen.last.state, "paused"));
    session_info(s, &info);
    session_totals(&during);
    session_end(s);
    session_totals(&after);
    expect(!kernel_task.streams); // or the next session gets its samples
    expect(during.sessions == before.sessions + 1);
    expect(after.sessions == before.sessions);
    expect(after.begun == before.begun + 1);
    expect(after.taken == during.taken);
    expect(after.taken == before.taken + info.taken);
    expect(after.missed == before.missed + info.missed);
    expect(after.others == before.others + info.others);
}

#define HELD_UP_TICKS 100u
#define TRIES 20

static u32 held_up; // marked accesses: 1: interrupts are off; 2: over

static void hold_up(void *arg UNUSED)
{
    expect(!run_on(current, cpu_count - 1));
    u32 flags = irq_save();
    __atomic_store_n(&held_up, 1, __ATOMIC_RELEASE);
    busy(HELD_UP_TICKS * NSEC_PER_MSEC);
    irq_restore(flags);
    __atomic_store_n(&held_up, 2, __ATOMIC_RELEASE);
}

static void wait_for_held_up(u32 state)
{
    while (__atomic_load_n(&held_up, __ATOMIC_ACQUIRE) != state)
        sched_yield();
}

// Begins a session while another CPU has interrupts off. Returns the number of
// ticks that it counts beyond those of its own time: they were due before it.
static u32 ticks_of_before(const struct sprofile_options *o)
{
    struct sprofile_info i;
    struct stream *s;
    __atomic_store_n(&held_up, 0, __ATOMIC_RELAXED);
    expect(!kthread_create("test", hold_up, NULL, NULL));
    wait_for_held_up(1);
    expect(!session_begin(&kernel_task, o, &readers, &s));
    session_info(s, &i);
    session_end(s);
    wait_for_held_up(2);
    u64 ticks = i.taken + i.missed + i.others;
    u64 due = i.elapsed_ns / NSEC_PER_MSEC * cpu_count;
    return ticks > due ? (u32)(ticks - due) : 0;
}

// (Several tries, as the host may pause this CPU within one.)
KERNEL_TEST(session_is_not_notified_of_ticks_before_it)
{
    struct sprofile_options o = options(1000);
    struct stream *other;
    struct cpu_set affinity = current->affinity;
    u32 least = ~0u;
    if (cpu_count == 1) {
        test_skip("one CPU alone");
        return;
    }
    strlcpy(o.source, "lapic", sizeof(o.source));
    if (source_lacks(o.source) ||
        !expect_begun(session_begin(&kernel_task, &o, &readers, &other)))
        return;
    expect(!run_on(current, 0)); // not the CPU that is held up
    for (u32 n = 0; n < TRIES && least > HELD_UP_TICKS / 2; n++)
        least = MIN(least, ticks_of_before(&o));
    thread_set_affinity(current, &affinity);
    session_end(other);
    expect(least <= HELD_UP_TICKS / 2);
}

#define SHORT_SESSIONS 50 // on one CPU

static bool all_ended; // marked accesses

static void begin_and_end(void *arg)
{
    struct sprofile_options o = options(20000);
    o.ring_bytes = PAGE_SIZE;
    for (u32 i = 0; i < test_rounds(SHORT_SESSIONS); i++) {
        struct stream *s;
        expect(!session_begin(arg, &o, &readers, &s));
        session_end(s);
    }
    __atomic_store_n(&all_ended, true, __ATOMIC_RELEASE);
}

KERNEL_TEST(sessions_are_notified_while_they_come_and_go)
{
    struct sysinfo_sampling first, now, then;
    session_totals(&first);
    then = first;
    __atomic_store_n(&all_ended, false, __ATOMIC_RELAXED);
    expect(!kthread_create("test", begin_and_end, NULL, NULL));
    while (!__atomic_load_n(&all_ended, __ATOMIC_ACQUIRE)) {
        struct seen seen = { 0 };
        sessions_each(see, &seen);
        expect(seen.count <= first.sessions + 1);
        session_totals(&now);
        expect(now.begun >= then.begun && now.taken >= then.taken);
        expect(now.others >= then.others && now.lost >= then.lost);
        then = now;
        test_relax(); // -icount: a turn for the CPU of the thread
    }
    session_totals(&now);
    expect(now.begun == first.begun + test_rounds(SHORT_SESSIONS));
    expect(now.sessions == first.sessions);
}

// --- expected samples of a cycle counter ------------------------------------

static int start_nothing(const struct sample_source *s UNUSED,
                         struct sample_rate *rate)
{
    rate->period = strncmp(rate->event, "cycles", 6) ? 0 : 1000000;
    return 0;
}

static void stop_nothing(const struct sample_source *s UNUSED)
{
}

static const char *usable(const struct sample_source *s UNUSED)
{
    return NULL;
}

struct time_sums {
    u64 user, busy;
};

static struct time_sums time_sums(void)
{
    struct time_sums sums = { 0 };
    for (u32 i = 0; i < cpu_count; i++) {
        struct ledger_sums l;
        ledger_sums(i, &l);
        sums.user += l.user;
        sums.busy += l.elapsed - l.idle;
    }
    return sums;
}

// The expected samples of a source that counts this event at 10 kHz, over a
// time in which the CPUs are mostly idle. *low and *high: ticks in the time
// that they are busy, without and with begin and end of the session.
static u64 expected_of(const char *event, u64 *low, u64 *high)
{
    struct sprofile_options o = options(10000);
    struct sprofile_info i;
    struct stream *s;
    strlcpy(o.source, "pmc", sizeof(o.source));
    strlcpy(o.event, event, sizeof(o.event));
    struct time_sums before = time_sums();
    expect(!session_begin(NULL, &o, &readers, &s));
    struct time_sums begun = time_sums();
    busy(5 * NSEC_PER_MSEC);
    thread_sleep_until(clock_now_ns() + 200 * NSEC_PER_MSEC,
                       WAIT_UNINTERRUPTIBLE);
    struct time_sums over = time_sums();
    session_info(s, &i);
    struct time_sums after = time_sums();
    session_end(s);
    *low = (over.busy - begun.busy) / (i.tsc_hz / 10000);
    *high = (after.busy - before.busy) / (i.tsc_hz / 10000) + 1;
    expect(after.user == before.user); // no program runs yet
    return i.expected;
}

// A stub replaces the source, as QEMU has no counters: the test checks the
// expected samples; none are taken.
KERNEL_TEST(session_expects_no_samples_of_a_halted_cpu)
{
    struct sample_source *pmc = NULL;
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        if (!strcmp((*s)->name, "pmc"))
            pmc = (struct sample_source *)*s; // not const
    }
    assert(pmc);
    struct sample_source really = *pmc;
    u64 low, high, all;
    pmc->why_not = usable;
    pmc->start = start_nothing;
    pmc->stop = stop_nothing;
    all = expected_of("cycles", &low, &high);
    expect(all >= low && all <= high && all > 0);
    all = expected_of("cycles:k", &low, &high);
    expect(all >= low && all <= high && all > 0);
    expect(expected_of("cycles:u", &low, &high) == 0);
    expect(expected_of("branches", &low, &high) == 0);
    *pmc = really;
}
