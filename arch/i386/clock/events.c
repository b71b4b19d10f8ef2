// Each CPU's one-shot events, by a timer of the registry that is reserved
// permanently (`timer=`). The best is each CPU's own LAPIC timer, in count
// mode, or in TSC deadline mode where the CPU has it. Otherwise one timer of
// the machine is shared by all CPUs: it is set to the earliest of their
// deadlines, and the boot CPU, which it interrupts, sends an IPI to the CPUs
// whose deadline is due.
//
// A LAPIC timer is accessed by its own CPU only, with interrupts off; the
// callouts keep its deadline. `shared_lock` guards the deadlines and the timer
// in shared mode.
//
// A deadline beyond the timer's range is reached in several steps: an interrupt
// before the deadline (a step, a slow reference, a stale interrupt) finds
// nothing due, and the callouts arm the next step.
// nothing due, and the callouts arm the next step.
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/base/cmdline.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/debug/fault.h"
#include "kernel/sync/spinlock.h"
#include "kernel/time/callout.h"
#include "lib/string.h"

KERNEL_ARG(timer,
           "timer=NAME: the timer that wakes sleepers (lapic, hpet, pit)");

#define NEVER (~0ull)
#define OWNER "the clock's events"

// ns * multiplier >> 24 = ticks. Steps stay below 2^31 ns and 2^31 ticks.
#define SHIFT 24
#define STEP_NS_MAX (1u << 31)
#define STEP_TICKS_MAX (1u << 31)

// A timer that runs slightly fast by the clock would always interrupt just
// before the deadline, and need a second interrupt: so the multiplier makes it
// 1/32768 late instead.
#define LATE_SHIFT 15

static enum { LAPIC_COUNT, LAPIC_DEADLINE, SHARED } mode;
static u32 multiplier, step_ns;

// Mode SHARED:
static struct spinlock shared_lock = SPINLOCK_INIT("the clock's events");
static struct {
    u64 deadline; // NEVER: not armed
} __attribute__((aligned(64))) events[CPU_MAX];
static struct timer *shared;
static u32 shared_ticks_min;
static u64 shared_deadline = NEVER; // its setting; under shared_lock

static void set_rate(u64 hz, u64 ticks_max)
{
    u64 late = hz + (hz >> LATE_SHIFT);
    multiplier = (u32)DIV_ROUND_UP(late << SHIFT, NSEC_PER_SEC);
    u64 ns = (ticks_max - ticks_max / 1024) * NSEC_PER_SEC / hz;
    step_ns = (u32)MIN(ns, (u64)STEP_NS_MAX);
}

static u32 ns_to_ticks(u32 ns)
{
    return (u32)((u64)ns * multiplier >> SHIFT) + 1;
}

static u32 ticks_until(u64 deadline)
{
    u64 now = clock_now_ns(), left = deadline - now;
    u32 ns = (u32)left;
    if (unlikely(left >> 32 || ns > step_ns)) // far, or past
        return ns_to_ticks(deadline > now ? step_ns : 0);
    return ns_to_ticks(ns);
}

// --- the LAPIC's timers

static void timer_event(void *arg UNUSED)
{
    if (fault_due(FAULT_EVENT_LOST))
        return;
    callouts_interrupt(clock_now_ns());
    if (fault_due(FAULT_EVENT_DOUBLE))
        callouts_interrupt(clock_now_ns());
}

// --- a shared timer

static void shared_set(u64 deadline)
{
    spin_assert_held(&shared_lock);
    shared_deadline = deadline;
    int err = shared->start(shared, TIMER_ONESHOT,
                            MAX(ticks_until(deadline), shared_ticks_min));
    assert(!err);
}

// Whether its interrupt has been lost: it was due more than CALLOUTS_LOST_NS
// ago.
static bool shared_is_lost(void)
{
    return shared_deadline != NEVER &&
           shared_deadline + CALLOUTS_LOST_NS < clock_now_ns();
}

static void shared_set_anew(void)
{
    u64 next = NEVER;
    for (u32 i = 0; i < cpu_count; i++)
        next = MIN(next, events[i].deadline);
    shared_set(next);
}

static void shared_arm(u64 deadline)
{
    spin_lock(&shared_lock);
    events[this_cpu()->id].deadline = deadline;
    if (deadline < shared_deadline)
        shared_set(deadline);
    else if (shared_is_lost())
        shared_set_anew();
    spin_unlock(&shared_lock);
}

// This CPU's deadline is due, unless it has been changed since; then the timer
// has been set for the new one.
static void shared_event(void *arg UNUSED)
{
    u64 *armed = &events[this_cpu()->id].deadline;
    spin_lock(&shared_lock);
    u64 now = clock_now_ns();
    bool due = *armed <= now;
    if (due)
        *armed = NEVER;
    spin_unlock(&shared_lock);
    if (due)
        callouts_interrupt(now);
}

// Returns the CPUs whose deadline is due, as bits; sets the timer to the next
// deadline.
static u32 shared_next(void)
{
    spin_assert_held(&shared_lock);
    u64 now = clock_now_ns(), next = NEVER;
    u32 due = 0;
    for (u32 i = 0; i < cpu_count; i++) {
        u64 deadline = events[i].deadline;
        if (deadline <= now)
            due |= 1u << i;
        else
            next = MIN(next, deadline);
    }
    shared_deadline = NEVER;
    if (next != NEVER)
        shared_set(next);
    return due;
}

static void shared_pass_on(void)
{
    spin_lock(&shared_lock);
    u32 due = shared_next();
    spin_unlock(&shared_lock);
    u32 own = 1u << this_cpu()->id;
    if (due & ~own)
        lapic_send_ipi_mask(due, VECTOR_FORWARDED);
    if (due & own)
        shared_event(NULL);
}

static void shared_fired(void *arg UNUSED, const struct trapframe *tf UNUSED)
{
    if (fault_due(FAULT_EVENT_LOST))
        return;
    shared_pass_on();
    if (fault_due(FAULT_EVENT_DOUBLE))
        shared_pass_on();
}

// --- both

static NOINLINE void arm_otherwise(u64 deadline)
{
    if (mode == SHARED) {
        shared_arm(deadline);
        return;
    }
    u32 ticks = ticks_until(deadline);
    lapic_timer_deadline(rdtsc() + ticks);
}

void clock_arm(u64 deadline)
{
    if (likely(mode == LAPIC_COUNT))
        lapic_timer_start(ticks_until(deadline));
    else
        arm_otherwise(deadline);
}

void clock_send_event(const struct cpu *cpu)
{
    lapic_send_ipi(cpu->apic_id,
                   mode == SHARED ? VECTOR_FORWARDED : VECTOR_TIMER);
}

u32 clock_event_vector(void)
{
    return mode == SHARED ? shared->vector : VECTOR_TIMER;
}

void lapic_timer_init_cpu(void)
{
    if (mode == SHARED)
        return;
    if (mode == LAPIC_COUNT)
        lapic_timer_mode(VECTOR_TIMER);
    else
        lapic_timer_deadline_mode();
}

// Also called before the events have a timer: no other user may reserve it
// first.
bool clock_events_use(const struct timer *t)
{
    return !apic_present || !strcmp(arg_timer.value, t->name);
}

static struct timer *choose(void)
{
    struct timer *t;
    if (arg_timer.present) {
        int err = timer_reserve_name(arg_timer.value, OWNER, &t);
        if (!err && t->flags & TIMER_ONESHOT)
            return t;
        if (!err)
            timer_release(t);
        log_printf("clock: timer=%s: %s\n", arg_timer.value,
                   !err             ? "no one-shot mode"
                   : err == -ENOENT ? "no such timer"
                                    : "cannot be used here");
    }
    int err =
        timer_reserve(TIMER_ONESHOT, NSEC_PER_MSEC, NSEC_PER_MSEC, OWNER, &t);
    if (err)
        panic("clock: no timer at all on this machine");
    return t;
}

static void use_lapic(void)
{
    irq_register_vector(VECTOR_TIMER, timer_event, NULL, "timer");
    if (lapic_timer_has_deadline()) {
        mode = LAPIC_DEADLINE;
        set_rate(clock_tsc_hz(), STEP_TICKS_MAX);
        log_printf("clock: events by the LAPIC's TSC deadline\n");
    } else {
        set_rate(lapic_timer.hz, STEP_TICKS_MAX);
        log_printf("clock: events by the LAPIC timer, %u.%03u MHz\n",
                   lapic_timer.hz / 1000000, lapic_timer.hz / 1000 % 1000);
    }
}

static void use_shared(struct timer *t)
{
    mode = SHARED;
    shared = t;
    set_rate(t->hz, MIN(timer_ticks(t, t->max_period), (u64)STEP_TICKS_MAX));
    shared_ticks_min = (u32)timer_ticks(t, t->min_period);
    for (u32 i = 0; i < CPU_MAX; i++)
        events[i].deadline = NEVER;
    timer_attach(t, shared_fired);
    if (!apic_present) {
        log_printf("clock: events by %s\n", t->name);
        return;
    }
    irq_register_vector(VECTOR_TIMER, timer_interrupt, &lapic_timer,
                        "lapic timer");
    irq_register_vector(VECTOR_FORWARDED, shared_event, NULL,
                        "timer, forwarded");
    log_printf("clock: events of all CPUs by %s\n", t->name);
}

void clock_events_init(u32 lapic_hz)
{
    lapic_timer_found(lapic_hz);
    timers_probe();
    struct timer *t = choose();
    if (t == &lapic_timer)
        use_lapic();
    else
        use_shared(t);
    lapic_timer_init_cpu();
}
