// The timer registry and every timer of this machine. Nothing here depends on
// the speed of a virtual machine's host: a timer may be late, but never early,
// and no callback may come that must not.

#include "kernel/time/timer.h"

#include "arch/clock.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/clock/rtc_format.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/irq/apic.h"
#include "arch/nmi.h"
#include "kernel/base/errno.h"
#include "kernel/sched/thread.h"
#include "lib/counter.h"
#include "lib/string.h"
#include "tests/kernel/test.h"

#define PERIOD (2 * NSEC_PER_MSEC)

// The most that a timer may be fast, in ppm, as measured by the clock.
#define FAST_PPM 2000u

static struct {
    u32 count, off; // callbacks; of these, with interrupts off
} __attribute__((aligned(64))) seen[CPU_MAX];
static bool silent; // no callback may come
static u32 too_late;

static void forget(void)
{
    for (u32 i = 0; i < CPU_MAX; i++) {
        WRITE_ONCE(seen[i].count, 0);
        WRITE_ONCE(seen[i].off, 0);
    }
    WRITE_ONCE(too_late, 0);
    WRITE_ONCE(silent, false);
}

static void note(void *arg, const struct trapframe *tf)
{
    u32 cpu = this_cpu()->id;
    if (READ_ONCE(silent) || arg != seen)
        WRITE_ONCE(too_late, 1);
    ADD_ONCE(seen[cpu].count, 1);
    if (!(tf->eflags & EFLAGS_IF))
        ADD_ONCE(seen[cpu].off, 1);
}

static u32 count_on(u32 cpu)
{
    return READ_ONCE(seen[cpu].count);
}

static bool wait_for(u32 cpu, u32 count)
{
    u64 limit = clock_now_ns() + TEST_PATIENCE;
    while (count_on(cpu) < count && clock_now_ns() < limit)
        test_relax();
    return count_on(cpu) >= count;
}

// Runs `test` on each usable, free timer that has the flags.
static void with_each(u32 flags, void (*test)(struct timer *t))
{
    LINKER_SET_FOR_EACH(struct timer, t, timers) {
        struct timer *got;
        if (((*t)->flags & flags) != flags ||
            timer_reserve_name((*t)->name, "a test", &got))
            continue;
        expect(got == *t);
        forget();
        test(got);
        timer_release(got);
    }
}

// --- reserving --------------------------------------------------------------

static void reserve_again(struct timer *t)
{
    struct timer *got;
    expect(timer_reserve_name(t->name, "another", &got) == -EBUSY);
    expect(!strcmp(t->owner, "a test"));
    if (!t->line)
        return;
    LINKER_SET_FOR_EACH(struct timer, other, timers) {
        bool same_line = *other != t && (*other)->line == t->line;
        if (same_line)
            expect(timer_reserve_name((*other)->name, "x", &got) != 0);
    }
}

KERNEL_TEST(timer_has_one_owner)
{
    struct timer *got;
    with_each(0, reserve_again);
    expect(timer_reserve_name("sundial", "a test", &got) == -ENOENT);
    expect(timer_reserve_name("", "a test", &got) == -ENOENT);
}

KERNEL_TEST(timer_best_one_is_taken)
{
    struct timer *got[16];
    u32 n = 0;
    while (n < ARRAY_SIZE(got) &&
           !timer_reserve(TIMER_PERIODIC, NSEC_PER_MSEC, 10 * NSEC_PER_MSEC,
                          "a test", &got[n])) {
        expect(!n || got[n]->rank < got[n - 1]->rank);
        expect(got[n]->flags & TIMER_PERIODIC && !got[n]->why_not);
        n++;
    }
    expect(n);
    struct timer *none;
    expect(timer_reserve(TIMER_PERIODIC, NSEC_PER_MSEC, 10 * NSEC_PER_MSEC,
                         "a test", &none) == -EBUSY);
    expect(timer_reserve(TIMER_PERIODIC, 1, 1, "a test", &none) == -ENODEV);
    while (n)
        timer_release(got[--n]);
}

static u32 ranks_seen, last_rank;

static void in_order(const struct timer *t, void *arg UNUSED)
{
    char text[64];
    timer_describe(t, text, sizeof(text));
    expect(text[0] && (!ranks_seen || t->rank < last_rank));
    expect(!t->why_not || !t->owner);
    last_rank = t->rank;
    ranks_seen++;
}

KERNEL_TEST(timer_list_tells_all)
{
    ranks_seen = 0;
    timers_each(in_order, NULL);
    expect(ranks_seen >= 3);
}

static void refuse(struct timer *t)
{
    u32 all = TIMER_PERIODIC | TIMER_ONESHOT;
    expect(timer_start(t, 0, PERIOD, note, seen) == -EINVAL);
    expect(timer_start(t, all, PERIOD, note, seen) == -EINVAL);
    expect(timer_start(t, TIMER_PERIODIC | TIMER_PER_CPU, PERIOD, note, seen) ==
           -EINVAL);
    u32 cannot = (TIMER_ONESHOT | TIMER_NMI) & ~t->flags;
    if (cannot)
        expect(timer_start(t, cannot & -cannot, PERIOD, note, seen) == -EINVAL);
    expect(timer_start(t, TIMER_PERIODIC, t->min_period - 1, note, seen) ==
           -EINVAL);
    expect(timer_start(t, TIMER_PERIODIC, t->max_period + 1, note, seen) ==
           -EINVAL);
    expect(!t->mode && !count_on(0));
    timer_stop(t); // stays stopped
    expect(timer_start(t, TIMER_PERIODIC, PERIOD, note, seen) == 0);
    expect(timer_start(t, TIMER_PERIODIC, PERIOD, note, seen) == -EBUSY);
}

KERNEL_TEST(timer_refuses_what_it_cannot_do)
{
    with_each(TIMER_PERIODIC, refuse);
}

// --- callbacks --------------------------------------------------------------

// For slow timers, instead of 20 periods.
#define MOST_NS (250 * NSEC_PER_MSEC)

static void run_periods(struct timer *t, u64 period)
{
    forget();
    u64 start = clock_now_ns();
    expect(timer_start(t, TIMER_PERIODIC, period, note, seen) == 0);
    u64 real = timer_period_ns(t);
    if (t->flags & TIMER_POWER_OF_TWO)
        expect(real * real <= 2 * period * period &&
               2 * real * real >= period * period);
    else
        expect(real * 100 >= period * 99 && real * 99 <= period * 100);
    u32 wanted = MAX(20u, (u32)(20 * NSEC_PER_MSEC / real));
    wanted = MIN(wanted, 1 + (u32)(MOST_NS / real));
    expect(wait_for(0, wanted));
    // The first period of a free-running chip may end at once.
    u64 least = (wanted - 1) * real;
    u64 took = clock_now_ns() - start;
    expect(took + took / (1000000 / FAST_PPM) >= least);
    timer_stop(t);
    WRITE_ONCE(silent, true);
    if (!(t->flags & TIMER_PER_CPU)) {
        for (u32 cpu = 1; cpu < cpu_count; cpu++)
            expect(!count_on(cpu));
    }
    expect(!too_late);
}

static void try_periods(struct timer *t)
{
    static const u64 periods[] = { 250 * NSEC_PER_USEC, 1 * NSEC_PER_MSEC,
                                   7 * NSEC_PER_MSEC, 31 * NSEC_PER_MSEC };
    for (u32 i = 0; i < ARRAY_SIZE(periods); i++)
        run_periods(t, MAX(periods[i], t->min_period));
}

KERNEL_TEST(timer_periods_are_kept)
{
    with_each(TIMER_PERIODIC, try_periods);
}

static void start_on_all(struct timer *t)
{
    expect(timer_start(t, TIMER_PERIODIC | TIMER_ALL_CPUS, PERIOD, note,
                       seen) == 0);
    for (u32 cpu = 0; cpu < cpu_count; cpu++)
        expect(wait_for(cpu, 5));
    expect(!too_late);
}

KERNEL_TEST(timer_reaches_all_cpus)
{
    with_each(TIMER_PERIODIC | TIMER_ALL_CPUS, start_on_all);
}

// The number of shots equals the number of periods passed, within 8 standard
// deviations or more (that of a distance is less than a period), even if shots
// are late. The boot CPU gets a callback for each shot, or one for several.
#define RANDOM_SHOTS 400
#define RANDOM_OFF(shots) (160 + (shots) / 16) // 8 * sqrt(400) = 160

static void vary(struct timer *t)
{
    u32 mode = TIMER_PERIODIC | TIMER_RANDOM | (t->flags & TIMER_ALL_CPUS);
    u64 period = MAX(4 * t->min_period, 250 * NSEC_PER_USEC);
    u64 before = counter_read(&t->shots), shots, periods;
    t->seed = test_random() | 1;
    expect(timer_start(t, mode, t->max_period / 4 + NSEC_PER_USEC, note,
                       seen) == -EINVAL);
    expect(timer_start(t, TIMER_ONESHOT | TIMER_RANDOM, period, note, seen) ==
           -EINVAL);
    u64 since = clock_now_ns();
    expect(timer_start(t, mode, period, note, seen) == 0);
    do { // a delayed boot CPU counts its shots late
        test_relax();
        shots = counter_read(&t->shots) - before;
        periods = (clock_now_ns() - since) / timer_period_ns(t);
    } while ((shots < RANDOM_SHOTS || periods >= shots + RANDOM_OFF(shots)) &&
             clock_now_ns() < since + TEST_PATIENCE);
    expect(shots >= RANDOM_SHOTS && periods < shots + RANDOM_OFF(shots));
    expect(shots < periods + RANDOM_OFF(shots));
    timer_stop(t);
    expect(count_on(0) <= counter_read(&t->shots) - before);
}

KERNEL_TEST(timer_counts_random_shots)
{
    with_each(TIMER_RANDOM, vary);
}

static void shoot(struct timer *t)
{
    static const u64 delays[] = { 20 * NSEC_PER_USEC, 500 * NSEC_PER_USEC,
                                  20 * NSEC_PER_MSEC };
    for (u32 i = 0; i < ARRAY_SIZE(delays); i++) {
        u64 start = clock_now_ns(), delay = MAX(delays[i], t->min_period);
        forget();
        expect(timer_start(t, TIMER_ONESHOT, delay, note, seen) == 0);
        expect(wait_for(0, 1));
        u64 took = clock_now_ns() - start;
        expect(took + took / (1000000 / FAST_PPM) + NSEC_PER_USEC >= delay);
        u64 later = clock_now_ns() + 2 * NSEC_PER_MSEC;
        while (clock_now_ns() < later)
            test_relax();
        expect(count_on(0) == 1);
        timer_stop(t);
    }
}

KERNEL_TEST(timer_shoots_once)
{
    with_each(TIMER_ONESHOT, shoot);
}

static u64 soon(const struct timer *t)
{
    return MAX(50 * NSEC_PER_USEC, t->min_period);
}

static void again(void *arg, const struct trapframe *tf)
{
    struct timer *t = arg;
    note(seen, tf);
    int err = timer_again(t, soon(t));
    expect(!err || (err == -EBUSY && t->stopping));
}

static void shoot_again(struct timer *t)
{
    for (u32 i = 0; i < 20; i++) {
        forget();
        expect(timer_start(t, TIMER_ONESHOT, soon(t), again, t) == 0);
        expect(wait_for(0, 1 + i));
        timer_stop(t);
        WRITE_ONCE(silent, true);
    }
    expect(!too_late);
}

KERNEL_TEST(timer_shoots_from_its_callback)
{
    with_each(TIMER_ONESHOT, shoot_again);
}

// Stops the timer at a random moment: no callback comes after timer_stop.
static void stop_at_random(struct timer *t, u32 mode)
{
    u64 period = MAX(t->min_period, 130 * NSEC_PER_USEC);
    t->seed = test_random() | 1;
    for (u32 i = 0; i < 30; i++) {
        WRITE_ONCE(silent, false);
        expect(timer_start(t, mode, period, note, seen) == 0);
        u64 until = clock_now_ns() + test_random() % (4 * period);
        while (clock_now_ns() < until)
            test_relax();
        timer_stop(t);
        WRITE_ONCE(silent, true);
        until = clock_now_ns() + 2 * period;
        while (clock_now_ns() < until)
            test_relax();
    }
    expect(!too_late);
}

static void stop_fixed(struct timer *t)
{
    stop_at_random(t, TIMER_PERIODIC);
    if (t->flags & TIMER_ALL_CPUS)
        stop_at_random(t, TIMER_PERIODIC | TIMER_ALL_CPUS);
}

KERNEL_TEST(timer_stops)
{
    with_each(TIMER_PERIODIC, stop_fixed);
}

// --- NMIs -------------------------------------------------------------------

static u32 unclaimed(void)
{
    u32 sum = 0;
    for (u32 i = 0; i < cpu_count; i++)
        sum += nmi_unclaimed(i);
    return sum;
}

// Interrupts are off: all callbacks are from NMIs.
static void collect(void *arg)
{
    u32 cpu = this_cpu()->id, wanted = READ_ONCE(seen[cpu].off) + 10;
    u64 limit = clock_now_ns() + TEST_PATIENCE;
    while (READ_ONCE(seen[cpu].off) < wanted && clock_now_ns() < limit)
        test_relax();
    if (READ_ONCE(seen[cpu].off) >= wanted)
        cpu_set_add_atomic(arg, cpu);
}

static void sample_all(struct timer *t)
{
    u32 before = unclaimed();
    struct cpu_set sampled = CPU_SET_EMPTY;
    expect(timer_start(t, TIMER_PERIODIC | TIMER_NMI, NSEC_PER_MSEC, note,
                       seen) == 0);
    expect(nmi_claim(&t->nmi) == -EBUSY);
    preempt_disable(); // stay on the CPU that the call leaves out
    smp_call_others(collect, &sampled);
    u32 flags = irq_save();
    collect(&sampled);
    irq_restore(flags);
    preempt_enable();
    for (u32 i = 0; i < cpu_count; i++)
        expect(cpu_set_has(&sampled, i));
    timer_stop(t);
    WRITE_ONCE(silent, true);
    expect(unclaimed() == before && !too_late);
}

// NMIs without a source, as the PIT's last one when the HPET takes its line.
static u32 strays; // 1: send; 2: stop

static void send_strays(void *arg UNUSED)
{
    run_on(current, 2);
    while (READ_ONCE(strays) == 1) {
        lapic_send_nmi(cpus[0]->apic_id);
        test_relax();
    }
    WRITE_ONCE(strays, 0);
}

// Starts the timer under stray NMIs: none may count as a tick or shift one.
// (Only the HPET can distinguish them; the RTC is acknowledged blindly.)
static void start_among_strays(struct timer *t)
{
    bool can_tell = !strncmp(t->name, "hpet", 4);
    for (u32 i = 0; can_tell && i < 40; i++) {
        forget();
        u64 start = clock_now_ns();
        expect(timer_start(t, TIMER_PERIODIC | TIMER_NMI, NSEC_PER_MSEC, note,
                           seen) == 0);
        expect(wait_for(0, 2));
        u32 ticks = count_on(0);
        u64 took = clock_now_ns() - start;
        expect(ticks <= 1 + took / timer_period_ns(t));
        timer_stop(t);
    }
}

KERNEL_TEST(timer_starts_among_stray_nmis)
{
    struct cpu_set affinity = current->affinity;
    if (cpu_count < 3) {
        test_skip("fewer than three CPUs");
        return;
    }
    run_on(current, 1);
    WRITE_ONCE(strays, 1);
    expect(kthread_create("strays", send_strays, NULL, NULL) == 0);
    with_each(TIMER_PERIODIC | TIMER_NMI, start_among_strays);
    WRITE_ONCE(strays, 2);
    while (READ_ONCE(strays))
        sched_yield();
    thread_set_affinity(current, &affinity);
}

KERNEL_TEST(timer_nmis_reach_all_cpus_with_interrupts_off)
{
    with_each(TIMER_PERIODIC | TIMER_NMI, sample_all);
}

static void stop_nmis(struct timer *t)
{
    u32 before = unclaimed();
    stop_at_random(t, TIMER_PERIODIC | TIMER_NMI);
    if (t->flags & TIMER_RANDOM)
        stop_at_random(t, TIMER_PERIODIC | TIMER_NMI | TIMER_RANDOM);
    expect(unclaimed() == before);
}

KERNEL_TEST(timer_nmis_stop)
{
    with_each(TIMER_PERIODIC | TIMER_NMI, stop_nmis);
}

// The NMIs of two users at once could not be distinguished.
KERNEL_TEST(timer_nmis_have_one_user)
{
    struct timer *a, *b;
    u32 flags = TIMER_PERIODIC | TIMER_NMI;
    forget();
    if (timer_reserve(flags, PERIOD, PERIOD, "a test", &a)) {
        test_skip("no timer that suits is free");
        return;
    }
    if (!timer_reserve(flags, PERIOD, PERIOD, "a test", &b)) {
        expect(timer_start(a, flags, PERIOD, note, seen) == 0);
        expect(timer_start(b, flags, PERIOD, note, seen) == -EBUSY);
        expect(timer_start(b, TIMER_PERIODIC, PERIOD, note, seen) == 0);
        timer_stop(a);
        timer_stop(b);
        expect(timer_start(b, flags, PERIOD, note, seen) == 0);
        timer_release(b);
    }
    timer_release(a);
}

// --- the RTC under its own NMIs ---------------------------------------------

#define RTC_D 0x0d // reads as D_VALID; register C never does
#define D_VALID 0x80

// Accesses the RTC on the last CPU while the boot CPU acknowledges its ticks.
// (On one CPU, QEMU's NMIs hardly ever come between the two halves of an
// access.)
static void keep_the_date(struct timer *t, u32 mode)
{
    struct cpu_set affinity = current->affinity;
    run_on(current, cpu_count - 1);
    s64 date = rtc_read_seconds();
    u32 wrong = 0;
    expect(date > 0);
    expect(timer_start(t, mode, t->min_period, note, seen) == 0);
    u64 start = clock_now_ns(), passed;
    do {
        wrong += cmos_read(RTC_D) != D_VALID;
        passed = clock_now_ns() - start;
    } while (passed < 100 * NSEC_PER_MSEC ||
             (count_on(0) < 100 && passed < TEST_PATIENCE));
    expect(!wrong && count_on(0) >= 100);
    for (u32 i = 0; i < 5; i++) {
        s64 now = rtc_read_seconds();
        expect(now >= date && now < date + 600);
        expect(rtc_write_seconds(now + 1000) == 0);
        s64 then = rtc_read_seconds();
        expect(then >= now + 1000 && then < now + 1600);
        expect(rtc_write_seconds(then - 1000) == 0);
    }
    u32 before = count_on(0);
    expect(wait_for(0, before + 20)); // the timer still ticks
    timer_stop(t);
    s64 now = rtc_read_seconds();
    expect(now >= date && now < date + 600);
    thread_set_affinity(current, &affinity);
}

#define CLOSE_NS (10 * NSEC_PER_MSEC)

static void sleep_for(u64 ns)
{
    thread_sleep_until(clock_now_ns() + ns, WAIT_UNINTERRUPTIBLE);
}

// Waits for the chip's next update (one per second) and returns its time.
static u64 wait_for_update(void)
{
    u64 limit = clock_now_ns() + 2 * NSEC_PER_SEC;
    while (!(cmos_read(RTC_A) & RTC_A_UPDATING) && clock_now_ns() < limit)
        cpu_relax();
    return clock_now_ns();
}

// Writes a date `us` after the beginning of an update, which takes 244 us in
// QEMU and Bochs (MC146818A, "Update Cycle").
static void write_in_update(s64 date, u32 us)
{
    u64 begun = wait_for_update();
    while (clock_now_ns() - begun < us * NSEC_PER_USEC)
        cpu_relax();
    expect(rtc_write_seconds(date + 1000) == 0);
    sleep_for(CLOSE_NS);
    s64 then = rtc_read_seconds();
    expect(then >= date + 1000 && then < date + 1600);
    expect(rtc_write_seconds(then - 1000) == 0);
    sleep_for(NSEC_PER_SEC - 3 * CLOSE_NS);
}

KERNEL_TEST(timer_rtc_is_written_whole)
{
    s64 date = rtc_read_seconds();
    if (!date) {
        test_skip("there is no RTC");
        return;
    }
    u32 step = cpu_count > 1 ? 50 : 10; // a try takes a second
    for (u32 us = 140; us <= 240; us += step)
        write_in_update(date, us);
}

KERNEL_TEST(timer_rtc_keeps_its_date)
{
    struct timer *t;
    if (timer_reserve_name("rtc", "a test", &t)) {
        test_skip("the RTC is in use, or silent");
        return;
    }
    forget();
    keep_the_date(t, TIMER_PERIODIC);
    if (t->flags & TIMER_NMI) {
        forget();
        keep_the_date(t, TIMER_PERIODIC | TIMER_NMI);
    }
    timer_release(t);
}
