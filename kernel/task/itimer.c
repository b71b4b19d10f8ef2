#include "kernel/task/itimer.h"

#include "arch/clock.h"
#include "arch/cpu.h"
#include "kernel/base/log.h"
#include "kernel/task/task.h"
#include "kernel/task/users.h"
#include "kernel/time/wallclock.h"

#define RESPITE_NS NSEC_PER_MSEC // least interval while a signal is pending

// The time that interrupts take for a user's timers is bounded by a leaky
// bucket (GCRA, the generic cell rate algorithm): each expiry moves the time
// until which the user has paid by TIME_PART times what it took, and while that
// is in the future, the timer is armed for it at the earliest. So users' timers
// together, however many they are, take 1/TIME_PART of one CPU, and about twice
// that in the interrupt around them. A user that took less has up to CREDIT_NS.
#define TIME_PART 32u
#define CREDIT_NS (10 * NSEC_PER_MSEC)

// Timers on the wall clock. Lock order: a task's cpu_timers.lock, wall_lock, a
// callout queue's lock.
static struct spinlock wall_lock = SPINLOCK_INIT("wall timers");
static struct list wall_timers = LIST_INIT(wall_timers);

u64 itimer_now(const struct itimer *t)
{
    switch (t->clock) {
    case ITIMER_ON_CPU:
        return cpu_timer_now(t->task, &t->cpu);
    case ITIMER_ON_WALL:
        return (u64)wallclock_now_ns();
    default:
        return clock_now_ns();
    }
}

// An expiry of the task's timer has taken `cycles`. Returns the nanoseconds for
// which the timer is to be delayed.
static u64 pay(const struct task *task, u64 cycles)
{
    if (!READ_ONCE(task->uid))
        return 0;
    u64 now = clock_now_ns(), least = now > CREDIT_NS ? now - CREDIT_NS : 0;
    u64 paid = payer_pay_time(task, least, TIME_PART * clock_tsc_to_ns(cycles));
    return paid > now ? paid - now : 0;
}

static void arm(struct itimer *t, u64 when)
{
    spin_assert_held(&t->task->cpu_timers.lock);
    assert_checked(t->next && t->info.signo);
    if (t->clock == ITIMER_ON_CPU) {
        cpu_timer_set(t->task, &t->cpu, when);
        return;
    }
    // Unsigned: a time span from now on may end after the last time in s64.
    s64 boot = t->clock == ITIMER_ON_WALL ? wallclock_boot_ns() : 0;
    bool is_past = boot > 0 && when < (u64)boot;
    callout_set(&t->callout, is_past ? 0 : when - (u64)boot);
}

static void list_on_wall(struct itimer *t)
{
    u32 flags = spin_lock_irq(&wall_lock);
    list_remove(&t->wall_node);
    if (t->next && t->clock == ITIMER_ON_WALL)
        list_push_back(&wall_timers, &t->wall_node);
    spin_unlock_irq(&wall_lock, flags);
}

// Number of intervals from the expiry at t->next to the first one after `now`;
// all but one are overruns.
static u64 intervals_to_next(const struct itimer *t, u64 now)
{
    assert_checked(t->interval);
    u64 late = now - t->next;
    return late < t->interval ? 1 : late / t->interval + 1;
}

// The timer is not armed until its signal is no longer ignored.
static void set_aside(struct itimer *t)
{
    spin_assert_held(&t->task->cpu_timers.lock);
    list_remove(&t->ignored_node);
    list_push_back(&t->task->cpu_timers.ignored, &t->ignored_node);
}

// The lock is held. Returns when the timer is to be armed for; 0: not.
static u64 expire(struct itimer *t, u64 now)
{
    spin_assert_held(&t->task->cpu_timers.lock);
    assert_checked(t->next);
    int sig = t->info.signo;
    bool lost = signal_would_be_lost(t->task, t->to, sig);
    u64 count = 1, when = 0;
    if (t->interval) {
        count = intervals_to_next(t, now);
        t->next += count * t->interval;
        if (lost && signal_discarded(t->task, t->to, sig))
            set_aside(t);
        else
            when = lost ? MAX(t->next, now + RESPITE_NS) : t->next;
    } else {
        t->next = 0;
        list_on_wall(t);
    }
    if (!lost)
        t->overrun_before = t->overrun;
    u64 overrun = lost ? t->overrun + count : count - 1;
    t->overrun = (u32)MIN(overrun, (u64)INT32_MAX);
    struct siginfo info = t->info;
    if (info.code == SI_TIMER)
        info.uid = t->overrun; // si_overrun
    if (t->to)
        signal_send_thread(t->to, sig, &info);
    else
        signal_send_task(t->task, sig, &info);
    return when;
}

// While a further signal is already pending, the overrun count of the signal
// taken last is `overrun_before`.
u32 itimer_overrun(const struct itimer *t)
{
    spin_assert_held(&t->task->cpu_timers.lock);
    if (!t->info.signo) // SIGEV_NONE
        return 0;
    return signal_would_be_lost(t->task, t->to, t->info.signo)
               ? t->overrun_before
               : t->overrun;
}

// The timer, or the wall clock, may have been set since the callout fired. When
// the wall clock is set, this is also called for timers that send no signal.
static void expired_callout(struct callout *c)
{
    struct itimer *t = container_of(c, struct itimer, callout);
    struct spinlock *lock = &t->task->cpu_timers.lock;
    u64 began = rdtsc();
    spin_lock(lock);
    u64 now = itimer_now(t);
    if (t->next && t->info.signo && t->clock != ITIMER_ON_CPU) {
        u64 when = now >= t->next ? expire(t, now) : t->next;
        u64 delay = pay(t->task, rdtsc() - began);
        if (when)
            arm(t, delay ? MAX(when, now + delay) : when);
    }
    spin_unlock(lock);
}

static void expired_cpu(struct cpu_timer *cpu)
{
    struct itimer *t = container_of(cpu, struct itimer, cpu);
    u64 when = expire(t, itimer_now(t));
    if (when)
        arm(t, when);
}

void itimer_init(struct itimer *t, struct task *task,
                 const struct siginfo *info)
{
    assert_checked(task);
    *t = (struct itimer){ .task = task, .info = *info };
    callout_init(&t->callout, expired_callout, CALLOUT_INTERRUPT);
    cpu_timer_init(&t->cpu, CPU_TIME_ALL, NULL, expired_cpu);
    list_init(&t->wall_node);
    list_init(&t->ignored_node);
}

void itimer_use_cpu(struct itimer *t, enum cpu_clock clock,
                    struct thread *thread)
{
    assert_checked(!t->next);
    t->clock = ITIMER_ON_CPU;
    cpu_timer_init(&t->cpu, clock, thread, expired_cpu);
}

// A callout that is firing concurrently finds `next` changed.
void itimer_set(struct itimer *t, u64 next, u64 interval)
{
    spin_assert_held(&t->task->cpu_timers.lock);
    callout_stop(&t->callout);
    cpu_timer_stop(&t->cpu);
    list_remove(&t->ignored_node);
    t->next = next;
    t->interval = interval;
    t->overrun = t->overrun_before = 0;
    t->used = true;
    list_on_wall(t);
    if (next && t->info.signo)
        arm(t, t->next);
}

u64 itimer_left(const struct itimer *t)
{
    if (!t->next)
        return 0;
    u64 now = itimer_now(t);
    if (t->next > now)
        return t->next - now;
    bool armed = t->info.signo && list_empty(&t->ignored_node);
    if (armed || !t->interval) // interrupt is due, or timer has expired
        return t->info.signo != 0;
    return t->interval - (now - t->next) % t->interval;
}

// Expiries until now are overruns.
static void arm_again(struct itimer *t)
{
    u64 now = itimer_now(t);
    list_remove(&t->ignored_node);
    if (now >= t->next) {
        u64 count = intervals_to_next(t, now);
        t->next += count * t->interval;
        t->overrun = (u32)MIN(t->overrun + count, (u64)INT32_MAX);
    }
    arm(t, t->next);
}

// No timer is missed: an expiry checks the action and sets the timer aside
// under one hold of the lock, before this one or with the new action.
void itimers_signal_matters(int sig)
{
    struct task *task = current_task();
    bool on_cpu = false;
    struct itimer *t, *next;
    u32 flags = spin_lock_irq(&task->cpu_timers.lock);
    list_for_each_safe(t, next, &task->cpu_timers.ignored, ignored_node) {
        if (t->info.signo != sig)
            continue;
        on_cpu |= t->clock == ITIMER_ON_CPU;
        arm_again(t);
    }
    spin_unlock_irq(&task->cpu_timers.lock, flags);
    if (on_cpu)
        cpu_timers_changed(task);
}

void itimer_end(struct itimer *t)
{
    if (!t->used)
        return;
    u32 flags = spin_lock_irq(&t->task->cpu_timers.lock);
    itimer_set(t, 0, 0);
    spin_unlock_irq(&t->task->cpu_timers.lock, flags);
    callout_drain(&t->callout);
}

// The wall clock was set: fires all wall timers; the handlers check the clock
// and arm them again.
static void wall_was_set(void)
{
    struct itimer *t;
    u32 flags = spin_lock_irq(&wall_lock);
    list_for_each(t, &wall_timers, wall_node)
        callout_set(&t->callout, 0);
    spin_unlock_irq(&wall_lock, flags);
}

static const struct wallclock_observer wall_observer = { wall_was_set };
WALLCLOCK_OBSERVER(wall_observer);
