#include "kernel/task/cpu_timer.h"

#include "kernel/base/log.h"
#include "kernel/task/task.h"
#include "kernel/trace/point.h"

// The shortest time between two checks of a timer: on several CPUs the
// remaining time is approached in ever smaller steps. It must be longer than an
// interrupt takes, even on a slow machine with a checked kernel: else the next
// interrupt would occur before this one returns, and the program would get no
// CPU time at all.
#define STEP_MIN_NS (50 * NSEC_PER_USEC)

static void check_timers(struct callout *c);

static struct callout watches[CPU_MAX]; // each used only by its CPU

void cpu_timers_init(struct cpu_timers *timers)
{
    spin_init(&timers->lock, "CPU timers");
    list_init(&timers->list);
    list_init(&timers->ignored);
    timers->active = false;
    timers->phase = CPU_TIMERS_NONE;
}

static void switched(const void *record);
static struct trace_listener switch_listener = { .point = TRACE_sched_switch,
                                                 .fn = switched };

// Another task may set a limit at any time, also while the task ends.
void cpu_timers_begin(struct cpu_timers *timers)
{
    u32 none = CPU_TIMERS_NONE;
    if (__atomic_load_n(&timers->phase, __ATOMIC_RELAXED) != none)
        return;
    trace_listen(&switch_listener);
    if (!__atomic_compare_exchange_n(&timers->phase, &none, CPU_TIMERS_LISTEN,
                                     false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        trace_unlisten(&switch_listener);
}

void cpu_timers_end(struct cpu_timers *timers)
{
    u32 flags = spin_lock_irq(&timers->lock);
    WRITE_ONCE(timers->active, false);
    spin_unlock_irq(&timers->lock, flags);
    u32 was =
        __atomic_exchange_n(&timers->phase, CPU_TIMERS_END, __ATOMIC_RELAXED);
    if (was == CPU_TIMERS_LISTEN)
        trace_unlisten(&switch_listener);
}

void cpu_timer_init(struct cpu_timer *timer, enum cpu_clock clock,
                    struct thread *thread, void (*fn)(struct cpu_timer *timer))
{
    *timer = (struct cpu_timer){ .clock = clock, .thread = thread, .fn = fn };
    list_init(&timer->node);
}

struct usage { // nanoseconds
    u64 user, all;
};

static struct usage usage_of(struct task *t, const struct thread *only)
{
    u64 user, kernel;
    if (only)
        thread_times(only, &user, &kernel);
    else
        task_times(t, &user, &kernel);
    return (struct usage){ clock_tsc_to_ns(user),
                           clock_tsc_to_ns(user + kernel) };
}

static u64 clock_of(const struct cpu_timer *timer, struct usage usage)
{
    return timer->clock == CPU_TIME_USER ? usage.user : usage.all;
}

u64 cpu_timer_now(struct task *t, const struct cpu_timer *timer)
{
    return clock_of(timer, usage_of(t, timer->thread));
}

void cpu_timer_set(struct task *t, struct cpu_timer *timer, u64 at)
{
    spin_assert_held(&t->cpu_timers.lock);
    timer->at = at;
    list_remove(&timer->node);
    list_push_back(&t->cpu_timers.list, &timer->node);
    WRITE_ONCE(t->cpu_timers.active, true);
}

void cpu_timer_stop(struct cpu_timer *timer)
{
    list_remove(&timer->node);
}

// Value of the timer's clock in ns; `whole` is the task's usage.
static u64 now_of(struct task *t, const struct cpu_timer *timer,
                  struct usage whole)
{
    return timer->thread ? cpu_timer_now(t, timer) : clock_of(timer, whole);
}

// Nanoseconds until the timer can be due at the earliest: the remaining time
// if all `cpus` run threads of the task from now on.
static u64 earliest(const struct cpu_timer *timer, u64 now, u32 cpus)
{
    assert(cpus && cpus <= CPU_MAX);
    if (now >= timer->at)
        return 0;
    u64 left = timer->at - now;
    return MAX(timer->thread ? left : left / cpus, STEP_MIN_NS);
}

// Sets this CPU's callout. The lock is held, interrupts are off.
static void watch(struct task *t)
{
    spin_assert_held(&t->cpu_timers.lock);
    struct callout *c = &watches[this_cpu()->id];
    struct usage whole = usage_of(t, NULL);
    u32 cpus = MAX(MIN(READ_ONCE(t->threads_running), cpu_count), 1u);
    struct cpu_timer *timer;
    u64 wait = WAIT_FOREVER;
    list_for_each(timer, &t->cpu_timers.list, node)
        wait = MIN(wait, earliest(timer, now_of(t, timer, whole), cpus));
    if (wait == WAIT_FOREVER) {
        WRITE_ONCE(t->cpu_timers.active, false);
        return;
    }
    if (!c->fn)
        callout_init(c, check_timers, CALLOUT_INTERRUPT);
    callout_set(c, clock_now_ns() + wait);
}

static void run_due(struct task *t)
{
    spin_assert_held(&t->cpu_timers.lock);
    struct usage whole = usage_of(t, NULL);
    struct cpu_timer *timer, *next;
    list_for_each_safe(timer, next, &t->cpu_timers.list, node) {
        if (now_of(t, timer, whole) >= timer->at) {
            list_remove(&timer->node);
            timer->fn(timer);
        }
    }
}

static void check_timers(struct callout *c UNUSED)
{
    struct task *t = current->task;
    if (!READ_ONCE(t->cpu_timers.active))
        return; // a thread of another task runs here now
    u32 flags = spin_lock_irq(&t->cpu_timers.lock);
    run_due(t);
    watch(t);
    spin_unlock_irq(&t->cpu_timers.lock, flags);
}

static void switched(const void *record UNUSED)
{
    struct task *t = current->task;
    if (!READ_ONCE(t->cpu_timers.active))
        return;
    spin_lock(&t->cpu_timers.lock);
    watch(t);
    spin_unlock(&t->cpu_timers.lock);
}

static void watch_here(void *arg)
{
    struct task *t = current->task;
    if (t == arg) {
        u32 flags = spin_lock_irq(&t->cpu_timers.lock);
        watch(t);
        spin_unlock_irq(&t->cpu_timers.lock, flags);
    }
}

void cpu_timers_changed(struct task *t)
{
    assert(irqs_enabled());
    cpu_timers_begin(&t->cpu_timers);
    watch_here(t);
    if (t != current->task || READ_ONCE(t->thread_count) > 1)
        smp_call_others(watch_here, t);
}
