// The PIT as a timecounter: no period is lost, on any CPU, at any time. Each
// reading is compared with the TSC before and after it, so a pause of the
// virtual machine does not fail the test.

#include "arch/clock.h"
#include "arch/i386/clock/clock_private.h"
#include "kernel/sched/thread.h"
#include "kernel/time/timecounter.h"
#include "kernel/time/timer.h"
#include "lib/string.h"
#include "tests/kernel/test.h"

#define ERROR_PPM 2000u // rate error of the TSC against the PIT
#define ERROR_TICKS 64u // two latch commands in progress (QEMU), and rounding

static struct timecounter *pit(void)
{
    FOR_EACH_TIMECOUNTER(tc)
    {
        if (!strcmp((*tc)->name, "pit") && !(*tc)->why_not)
            return *tc;
    }
    return NULL;
}

struct reading {
    u64 before, after; // TSC
    u32 ticks;
};

static struct reading read_it(struct timecounter *tc)
{
    struct reading r;
    r.before = rdtsc();
    r.ticks = (u32)tc->read();
    r.after = rdtsc();
    return r;
}

static u64 tsc_to_ticks(u64 tsc)
{
    return tsc * PIT_HZ / clock_tsc_hz();
}

// True if the time between the readings is the same on the PIT and the TSC.
static bool agree(const struct timecounter *tc, const struct reading *a,
                  const struct reading *b)
{
    u32 ticks = (b->ticks - a->ticks) & (u32)tc->mask;
    u64 least = tsc_to_ticks(b->before - a->after);
    u64 most = tsc_to_ticks(b->after - a->before);
    u64 error = most / (1000000 / ERROR_PPM) + ERROR_TICKS;
    // Modulo the mask.
    u64 above = (ticks - (least - MIN(error, least))) & (u32)tc->mask;
    return above <= most - least + 2 * error;
}

// No reading and no interrupt for `ns`.
static void skip(struct timecounter *tc, u64 ns)
{
    u32 flags = irq_save();
    struct reading start = read_it(tc);
    u64 until = rdtsc() + ns * (clock_tsc_hz() / 1000) / 1000000;
    while (rdtsc() < until)
        test_relax();
    struct reading end = read_it(tc);
    irq_restore(flags);
    u32 total = end.ticks - start.ticks; // 32 bits, whatever the mask
    u64 least = tsc_to_ticks(end.before - start.after);
    u64 most = tsc_to_ticks(end.after - start.before);
    u64 error = most / (1000000 / ERROR_PPM) + ERROR_TICKS;
    expect(total + error >= least && total <= most + error);
}

// (The longest one is the same on any number of CPUs.)
static void skip_periods(struct timecounter *tc)
{
    static const u32 ms[] = { 1, 30, 55, 60, 111, 300, 1000 };
    u32 count = ARRAY_SIZE(ms) - (cpu_count > 1);
    for (u32 i = 0; i < count; i++)
        skip(tc, ms[i] * NSEC_PER_MSEC);
}

// Consecutive readings, some within one tick, over many ticks.
static void never_back(struct timecounter *tc)
{
    struct reading first = read_it(tc), last = first;
    u32 same = 0;
    for (u32 i = 0; i < 5000; i++) {
        struct reading now = read_it(tc);
        expect(now.ticks - last.ticks < 1u << 31);
        same += now.ticks == last.ticks;
        last = now;
    }
    expect(agree(tc, &first, &last));
    log_printf("pit clock: %u of 5000 readings within a tick\n", same);
}

static u32 newest; // the newest reading of any CPU
static u32 backwards;

static void read_against_others(void *arg)
{
    struct timecounter *tc = arg;
    for (u32 i = 0; i < 1000; i++) {
        u32 seen = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
        u32 now = (u32)tc->read();
        if (now - seen >= 1u << 31)
            __atomic_fetch_add(&backwards, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&newest, now, __ATOMIC_RELEASE);
        cpu_relax();
    }
}

static void never_back_between_cpus(struct timecounter *tc)
{
    newest = (u32)tc->read();
    backwards = 0;
    smp_call_others(read_against_others, tc);
    struct reading a = read_it(tc), b = read_it(tc);
    expect(agree(tc, &a, &b) && !backwards);
}

// --- and in NMIs ------------------------------------------------------------

static struct {
    u32 last, count;
} __attribute__((aligned(64))) in_nmi[CPU_MAX];

static void read_in_nmi(void *arg, const struct trapframe *tf UNUSED)
{
    struct timecounter *tc = arg;
    u32 cpu = this_cpu()->id, now = (u32)tc->read();
    if (READ_ONCE(in_nmi[cpu].count) &&
        now - READ_ONCE(in_nmi[cpu].last) >= 1u << 31)
        __atomic_fetch_add(&backwards, 1, __ATOMIC_RELAXED);
    WRITE_ONCE(in_nmi[cpu].last, now);
    ADD_ONCE(in_nmi[cpu].count, 1);
}

// NMIs read as well: the readings that they interrupt stay correct.
static void read_under_nmis(struct timecounter *tc)
{
    struct timer *t;
    u64 period = 500 * NSEC_PER_USEC;
    if (timer_reserve(TIMER_PERIODIC | TIMER_NMI, period, period, "a test",
                      &t)) {
        test_skip("no timer sends NMIs");
        return;
    }
    backwards = 0;
    memset(in_nmi, 0, sizeof(in_nmi));
    expect(timer_start(t, TIMER_PERIODIC | TIMER_NMI, period, read_in_nmi,
                       tc) == 0);
    // On the CPU whose NMIs are counted. (Under -icount the CPUs take turns: a
    // reader on another one waits for all that spin in their NMIs.)
    struct cpu_set affinity = current->affinity;
    expect(!run_on(current, 0));
    struct reading first = read_it(tc), last = first;
    u64 limit = clock_now_ns() + TEST_PATIENCE;
    while (READ_ONCE(in_nmi[0].count) < 100 && clock_now_ns() < limit) {
        struct reading now = read_it(tc);
        expect(now.ticks - last.ticks < 1u << 31);
        last = now;
    }
    timer_release(t);
    thread_set_affinity(current, &affinity);
    expect(agree(tc, &first, &last));
    expect(READ_ONCE(in_nmi[0].count) >= 100 && !backwards);
}

static void try_all(struct timecounter *tc)
{
    skip_periods(tc);
    never_back(tc);
    never_back_between_cpus(tc);
    read_under_nmis(tc);
}

// In the current mode and, where possible, with both PIT counters. The changes
// of mode lose no period either.
KERNEL_TEST(pit_clock_loses_no_period)
{
    struct timecounter *tc = pit();
    if (!tc)
        return;
    try_all(tc);
    if (tc == timecounter_in_use())
        return;
    u32 flags = irq_save();
    struct reading first = read_it(tc);
    tc->start(tc);
    struct reading pair = read_it(tc);
    irq_restore(flags);
    expect(agree(tc, &first, &pair));
    try_all(tc);
    flags = irq_save();
    pair = read_it(tc);
    tc->stop(tc);
    struct reading last = read_it(tc);
    irq_restore(flags);
    expect(agree(tc, &pair, &last));
}
