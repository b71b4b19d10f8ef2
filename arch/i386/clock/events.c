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
//
// A timer whose shots do not come any more (kernel/time/eventwatch.c) is
// replaced by a shared one.
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/base/cmdline.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/debug/fault.h"
#include "kernel/sync/spinlock.h"
#include "kernel/time/callout.h"
#include "lib/cpu_memory.h"
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
static struct cpu_event {
    u64 deadline; // NEVER: not armed
} * events[CPU_MAX];
CPU_MEMORY(events, 1);
static struct timer *shared;
static u32 shared_ticks_min;
static u64 shared_deadline = NEVER; // its setting; under shared_lock

static void set_rate(u64 hz, u64 ticks_max)
{
    u64 late = hz + (hz >> LATE_SHIFT);
    WRITE_ONCE(multiplier, (u32)DIV_ROUND_UP(late << SHIFT, NSEC_PER_SEC));
    u64 ns = (ticks_max - ticks_max / 1024) * NSEC_PER_SEC / hz;
    WRITE_ONCE(step_ns, (u32)MIN(ns, (u64)STEP_NS_MAX));
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
        next = MIN(next, events[i]->deadline);
    shared_set(next);
}

static void shared_arm(u64 deadline)
{
    spin_lock(&shared_lock);
    events[this_cpu()->id]->deadline = deadline;
    if (deadline < shared_deadline)
        shared_set(deadline);
    else if (shared_is_lost())
        shared_set_anew();
    spin_unlock(&shared_lock);
}

// This CPU's deadline is due, unless it has been changed since; then the timer
// has been set for the new one.
static void shared_event(void)
{
    u64 *armed = &events[this_cpu()->id]->deadline;
    spin_lock(&shared_lock);
    u64 now = clock_now_ns();
    bool due = *armed <= now;
    if (due)
        *armed = NEVER;
    spin_unlock(&shared_lock);
    if (due)
        callouts_interrupt(now);
}

// Returns the CPUs whose deadline is due; sets the timer to the next deadline.
static struct cpu_set shared_next(void)
{
    spin_assert_held(&shared_lock);
    u64 now = clock_now_ns(), next = NEVER;
    struct cpu_set due = CPU_SET_EMPTY;
    for (u32 i = 0; i < cpu_count; i++) {
        u64 deadline = events[i]->deadline;
        if (deadline <= now)
            cpu_set_add(&due, i);
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
    struct cpu_set due = shared_next();
    spin_unlock(&shared_lock);
    u32 own = this_cpu()->id;
    if (cpu_set_has_other(&due, own))
        lapic_send_ipi_set(&due, VECTOR_FORWARDED);
    if (cpu_set_has(&due, own))
        shared_event();
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

// From another CPU: the shared timer has fired for this one, or this CPU's own
// timer seems to have lost an interrupt.
static void forwarded(void *arg UNUSED)
{
    if (READ_ONCE(mode) == SHARED)
        shared_event();
    else
        callouts_interrupt(clock_now_ns());
}

static void register_forwarded(void)
{
    irq_register_vector(VECTOR_FORWARDED, forwarded, NULL, "timer, forwarded");
}

static NOINLINE void arm_otherwise(u64 deadline)
{
    if (mode == SHARED) {
        shared_arm(deadline);
        return;
    }
    u32 ticks = ticks_until(deadline);
    lapic_timer_deadline(rdtsc() + ticks);
}

static ALWAYS_INLINE bool own_timer_stopped(void)
{
    return (fault_begun(FAULT_TIMER_STOPS) && !this_cpu()->id) ||
           fault_begun(FAULT_TIMERS_STOP);
}

void clock_arm(u64 deadline)
{
    if (own_timer_stopped() && READ_ONCE(mode) != SHARED)
        return;
    if (likely(READ_ONCE(mode) == LAPIC_COUNT))
        lapic_timer_start(ticks_until(deadline));
    else
        arm_otherwise(deadline);
}

void clock_send_event(const struct cpu *cpu)
{
    lapic_send_ipi(cpu->apic_id, VECTOR_FORWARDED);
}

u32 clock_event_vector(void)
{
    return mode == SHARED ? shared->vector : VECTOR_TIMER;
}

void lapic_timer_init_cpu(void)
{
    events[this_cpu()->id]->deadline = NEVER;
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
    register_forwarded();
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

// x86 keeps the order of stores: a CPU that sees the mode sees all before it.
static void drive_shared(struct timer *t)
{
    shared = t;
    shared_ticks_min = (u32)timer_ticks(t, t->min_period);
    shared_deadline = NEVER;
    for (u32 i = 0; i < cpu_count; i++)
        events[i]->deadline = NEVER;
    timer_attach(t, shared_fired);
    set_rate(t->hz, MIN(timer_ticks(t, t->max_period), (u64)STEP_TICKS_MAX));
    barrier();
    WRITE_ONCE(mode, SHARED);
}

static void use_shared(struct timer *t)
{
    drive_shared(t);
    if (!apic_present) {
        log_printf("clock: events by %s\n", t->name);
        return;
    }
    irq_register_vector(VECTOR_TIMER, timer_interrupt, &lapic_timer,
                        "lapic timer");
    register_forwarded();
    log_printf("clock: events of all CPUs by %s\n", t->name);
}

// --- replacing it while the machine runs

// Runs what is due, and arms the new timer for what is next.
static void go_on(void *arg UNUSED)
{
    u32 flags = irq_save();
    if (apic_present)
        lapic_timer_mode(LAPIC_TIMER_MASKED);
    callouts_interrupt(clock_now_ns());
    irq_restore(flags);
}

static void stop_old(void *arg)
{
    struct timer *old = arg;
    u32 flags = irq_save();
    old->stop(old);
    irq_restore(flags);
}

// A CPU that arms its own timer during the change arms the new one in go_on.
static void change_timer(struct timer *old, struct timer *t)
{
    u32 flags = spin_lock_irq(&shared_lock);
    drive_shared(t);
    spin_unlock_irq(&shared_lock, flags);
    if (old != &lapic_timer)
        smp_call_boot_cpu(stop_old, old);
    smp_call_all(go_on, NULL);
}

int clock_replace_timer(void)
{
    static const char *const others[] = { "hpet", "pit" };
    struct timer *old = mode == SHARED ? shared : &lapic_timer, *t;
    for (u32 i = 0; i < ARRAY_SIZE(others); i++) {
        if (timer_reserve_name(others[i], OWNER, &t))
            continue;
        log_printf("clock: the shots of %s do not come: events of all CPUs by "
                   "%s\n",
                   old->name, t->name);
        change_timer(old, t);
        timer_give_up(old, "its shots ceased to come");
        return 0;
    }
    return -ENODEV;
}

// A CPU that computes a step concurrently may be early, and arms the next step.
void clock_events_corrected(void)
{
    if (READ_ONCE(mode) != SHARED)
        set_rate(mode == LAPIC_DEADLINE ? clock_tsc_hz() : lapic_timer.hz,
                 STEP_TICKS_MAX);
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
