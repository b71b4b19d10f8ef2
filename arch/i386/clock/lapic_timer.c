// The local APIC's timer, one on each CPU (SDM vol. 3, 11.5.4): counts down at
// the measured rate, or waits for a TSC value (deadline mode).
//
// Usually the clock's events reserve it and drive it themselves (events.c);
// otherwise it is an ordinary timer of the registry. A CPU accesses its own
// timer only, with interrupts off.

#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/base/errno.h"

#define MSR_TSC_DEADLINE 0x6e0u
#define DEADLINE_TEST_NS 20000u
#define COUNT_TEST_NS 20000u
#define DEADLINE_TEST_LIMIT_NS 100000000u

#define TICKS_MIN 64u // below this an interrupt costs more
#define TICKS_MAX 0xffffffffu

static u32 measured_hz;
static bool deadline_works;

void lapic_timer_found(u32 hz)
{
    measured_hz = hz;
}

void lapic_timer_scale(u64 from, u64 to)
{
    struct timer *t = &lapic_timer;
    WRITE_ONCE(t->hz, (u32)(t->hz * to / from));
    t->min_period = timer_ns(t, TICKS_MIN);
    t->max_period = timer_ns(t, TICKS_MAX);
}

bool lapic_timer_has_deadline(void)
{
    return deadline_works;
}

void lapic_timer_deadline_mode(void)
{
    lapic_timer_mode(LAPIC_TIMER_TSC_DEADLINE | VECTOR_TIMER);
    // SDM vol. 3, 11.5.4.1: the mode must be set before the MSR is written.
    __asm__ volatile("mfence" ::: "memory");
}

void lapic_timer_deadline(u64 tsc)
{
    write_msr(MSR_TSC_DEADLINE, tsc);
}

// Tests the mode, since CPUID may be wrong. The interrupt that the test
// requests finds no event due, once interrupts are on.
static bool deadline_mode_works(void)
{
    if (!cpu_features.tsc_deadline)
        return false;
    lapic_timer_deadline_mode();
    u64 start_ns = clock_now_ns();
    u64 ticks = clock_tsc_hz() / (NSEC_PER_SEC / DEADLINE_TEST_NS);
    lapic_timer_deadline(rdtsc() + ticks);
    while (!lapic_requested(VECTOR_TIMER)) {
        if (clock_now_ns() - start_ns > DEADLINE_TEST_LIMIT_NS)
            return false;
        cpu_relax();
    }
    return clock_now_ns() - start_ns >= DEADLINE_TEST_NS / 2;
}

static bool counting_works(struct timer *t)
{
    const struct irq_source own = { VECTOR_TIMER, .message = true };
    return timer_interrupts(t, &own, TIMER_ONESHOT,
                            timer_ticks(t, COUNT_TEST_NS));
}

static const char *lapic_probe(struct timer *t)
{
    if (!apic_present)
        return "there is no local APIC";
    if (!measured_hz)
        return "it does not count";
    t->hz = measured_hz;
    t->min_period = timer_ns(t, TICKS_MIN);
    t->max_period = timer_ns(t, TICKS_MAX);
    deadline_works = deadline_mode_works();
    bool arrives = deadline_works || counting_works(t);
    if (deadline_works)
        t->flags |= TIMER_TSC_DEADLINE;
    lapic_timer_mode(LAPIC_TIMER_MASKED);
    return arrives ? NULL : TIMER_SILENT;
}

static u64 tsc_ticks(const struct timer *t, u64 ticks)
{
    u64 hz = clock_tsc_hz();
    return ticks / t->hz * hz + ticks % t->hz * hz / t->hz;
}

// One-shots use the TSC deadline mode where it works.
static int lapic_start(struct timer *t, u32 mode, u64 ticks)
{
    if (mode & TIMER_ONESHOT && deadline_works) {
        lapic_timer_deadline_mode();
        lapic_timer_deadline(rdtsc() + tsc_ticks(t, ticks));
        return 0;
    }
    u32 periodic = mode & TIMER_PERIODIC ? LAPIC_TIMER_PERIODIC : 0;
    lapic_timer_mode(periodic | VECTOR_TIMER);
    lapic_timer_start((u32)MIN(ticks, (u64)TICKS_MAX));
    return 0;
}

static void lapic_stop(struct timer *t UNUSED)
{
    lapic_timer_mode(LAPIC_TIMER_MASKED);
}

struct timer lapic_timer = {
    .name = "lapic",
    .rank = TIMER_RANK_LAPIC,
    .flags = TIMER_PERIODIC | TIMER_ONESHOT | TIMER_ALL_CPUS | TIMER_PER_CPU |
             TIMER_STOPS_IN_IDLE,
    .vector = VECTOR_TIMER,
    .probe = lapic_probe,
    .start = lapic_start,
    .stop = lapic_stop,
};
TIMER(lapic_timer);
