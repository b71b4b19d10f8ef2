// One-shot events: each CPU's LAPIC timer (counting, or comparing with the TSC
// where the CPU can), the PIT on a machine without APIC.
//
// All state is per CPU and touched with interrupts off. A deadline beyond the
// timer's range is reached in several steps; an interrupt that comes before the
// deadline (a step, a slow reference, a leftover) arms the next step.
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/init/log.h"
#include "kernel/time/timeout.h"

#define NEVER (~0ull)

// ns * multiplier >> 24 = ticks. Steps stay below 2^31 ns and 2^31 ticks.
#define SHIFT 24
#define STEP_NS_MAX (1u << 31)
#define STEP_TICKS_MAX (1u << 31)
#define PIT_TICKS_MAX 0xffffu
#define PIT_IRQ 0

// A timer that runs a little fast by our measure would always interrupt just
// before the deadline, and need a second interrupt: be 1/32768 late instead.
#define LATE_SHIFT 15

#define MSR_TSC_DEADLINE 0x6e0u
#define DEADLINE_TEST_NS 20000u
#define DEADLINE_TEST_LIMIT_NS 2000000u

static enum { LAPIC_COUNT, LAPIC_DEADLINE, PIT_COUNT } mode;
static u32 multiplier, step_ns;

static struct {
    u64 deadline; // NEVER: not armed
} __attribute__((aligned(64))) events[CPU_MAX];

static u32 ns_to_ticks(u32 ns)
{
    return (u32)((u64)ns * multiplier >> SHIFT);
}

static void set_rate(u64 hz, u32 ticks_max)
{
    multiplier = (u32)DIV_ROUND_UP(hz << SHIFT, NSEC_PER_SEC);
    u64 ns = (u64)(ticks_max - ticks_max / 1024) * NSEC_PER_SEC / hz;
    step_ns = (u32)MIN(ns, (u64)STEP_NS_MAX);
}

static void start(u32 ticks)
{
    ticks += (ticks >> LATE_SHIFT) + 1;
    if (likely(mode == LAPIC_COUNT))
        lapic_timer_start(ticks);
    else if (mode == LAPIC_DEADLINE)
        write_msr(MSR_TSC_DEADLINE, rdtsc() + ticks);
    else
        pit_start(ticks);
}

static void program(u64 deadline)
{
    u64 now = clock_now_ns();
    u32 ns = 0;
    if (deadline > now)
        ns = (u32)MIN(deadline - now, (u64)step_ns);
    start(ns_to_ticks(ns));
}

void clock_arm(u64 deadline)
{
    u64 *armed = &events[this_cpu()->id].deadline;
    if (*armed == deadline)
        return;
    *armed = deadline;
    program(deadline);
}

void clock_disarm(void)
{
    u64 *armed = &events[this_cpu()->id].deadline;
    if (*armed == NEVER)
        return;
    *armed = NEVER;
    if (mode == LAPIC_COUNT)
        lapic_timer_start(0);
    else if (mode == LAPIC_DEADLINE)
        write_msr(MSR_TSC_DEADLINE, 0);
    else
        pit_stop();
}

static void timer_interrupt(void *arg UNUSED)
{
    u64 *armed = &events[this_cpu()->id].deadline;
    if (*armed == NEVER) // it was under way when it was disarmed
        return;
    if (clock_now_ns() < *armed) {
        program(*armed);
        return;
    }
    *armed = NEVER;
    timeouts_interrupt();
}

static void set_deadline_mode(void)
{
    lapic_timer_mode(LAPIC_TIMER_TSC_DEADLINE | VECTOR_TIMER);
    // SDM vol. 3, 11.5.4.1: the mode must be set before the MSR is written.
    __asm__ volatile("mfence" ::: "memory");
}

void lapic_timer_init_cpu(void)
{
    events[this_cpu()->id].deadline = NEVER;
    if (mode == LAPIC_DEADLINE)
        set_deadline_mode();
    else
        lapic_timer_mode(VECTOR_TIMER);
}

// CPUID alone is not believed. The interrupt that the test requests is ignored
// by timer_interrupt, once interrupts are on.
static bool deadline_mode_works(void)
{
    if (!cpu_features.tsc_deadline)
        return false;
    set_deadline_mode();
    u64 start_ns = clock_now_ns();
    u64 ticks = clock_tsc_hz() / (NSEC_PER_SEC / DEADLINE_TEST_NS);
    write_msr(MSR_TSC_DEADLINE, rdtsc() + ticks);
    while (!lapic_requested(VECTOR_TIMER)) {
        if (clock_now_ns() - start_ns > DEADLINE_TEST_LIMIT_NS)
            return false;
        cpu_relax();
    }
    return clock_now_ns() - start_ns >= DEADLINE_TEST_NS / 2;
}

static void use_pit(void)
{
    mode = PIT_COUNT;
    set_rate(PIT_HZ, PIT_TICKS_MAX);
    events[this_cpu()->id].deadline = NEVER;
    int err = irq_register_isa(PIT_IRQ, timer_interrupt, NULL, "timer");
    assert(!err);
}

void clock_events_init(u32 lapic_hz)
{
    if (!apic_present) {
        use_pit();
        log_printf("clock: events by the PIT\n");
        return;
    }
    irq_register_vector(VECTOR_TIMER, timer_interrupt, NULL, "timer");
    events[this_cpu()->id].deadline = NEVER;
    if (deadline_mode_works()) {
        mode = LAPIC_DEADLINE;
        set_rate(clock_tsc_hz(), STEP_TICKS_MAX);
        log_printf("clock: events by the LAPIC's TSC deadline\n");
    } else {
        set_rate(lapic_hz, STEP_TICKS_MAX);
        log_printf("clock: events by the LAPIC timer, %u.%03u MHz\n",
                   lapic_hz / 1000000, lapic_hz / 1000 % 1000);
    }
    lapic_timer_init_cpu();
}
