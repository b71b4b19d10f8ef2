// System calls that only sleep: nanosleep, clock_nanosleep.

#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_types.h"
#include "kernel/task/task.h"

#define TIMER_ABSTIME 1u

// A sleep that a signal interrupts is restarted with the same deadline unless a
// handler runs; then `left` gets the remaining time.
static s32 sleep_until(u64 deadline, u32 left, bool wide)
{
    assert_may_sleep();
    struct thread *t = current;
    if (t->restart_deadline)
        deadline = t->restart_deadline;
    t->restart_deadline = 0;
    if (!thread_sleep_until(deadline, WAIT_INTERRUPTIBLE))
        return 0;
    u64 now = clock_now_ns();
    if (now >= deadline)
        return 0;
    if (left && time_to_user(left, wide, deadline - now))
        return -EFAULT;
    t->restart_deadline = deadline;
    return -ERESTARTNOHAND;
}

static s32 sleep_relative(u32 request, u32 left, bool wide)
{
    u64 ns;
    int err = time_from_user(request, wide, &ns);
    return err ? err : sleep_until(deadline_after(ns), left, wide);
}

// Absolute: the deadline is the same for every restart.
static s32 sleep_absolute(u32 clock, u32 request, bool wide)
{
    u64 at;
    int err = time_from_user(request, wide, &at);
    if (err)
        return err;
    if (clock == CLOCK_REALTIME)
        at = WAIT_UNTIL_WALL(at);
    err = thread_sleep_until(at, WAIT_INTERRUPTIBLE);
    return err ? -ERESTARTNOHAND : 0;
}

// --- on the CPU time of the process -----------------------------------------

struct cpu_sleep {
    struct cpu_timer timer;
    struct thread *thread;
    bool over;
};

static void cpu_sleep_over(struct cpu_timer *timer)
{
    struct cpu_sleep *s = container_of(timer, struct cpu_sleep, timer);
    spin_assert_held(&s->thread->task->cpu_timers.lock);
    WRITE_ONCE(s->over, true);
    thread_wake(s->thread);
}

// Sleeps until the task has consumed that much; 0 or -EINTR, with the rest in
// *left.
static int sleep_on_cpu_time(u64 at, u64 *left)
{
    struct task *t = current_task();
    struct cpu_sleep s = { .thread = current };
    cpu_timer_init(&s.timer, CPU_TIME_ALL, NULL, cpu_sleep_over);
    u32 flags = spin_lock_irq(&t->cpu_timers.lock);
    cpu_timer_set(t, &s.timer, at);
    spin_unlock_irq(&t->cpu_timers.lock, flags);
    cpu_timers_changed(current_task());

    int err = 0;
    WRITE_ONCE(current->wait_on, "CPU time");
    for (;;) {
        wait_prepare(WAIT_INTERRUPTIBLE);
        if (READ_ONCE(s.over) || err)
            break;
        err = wait_sleep(WAIT_INTERRUPTIBLE, WAIT_FOREVER);
    }
    wait_finish();

    flags = spin_lock_irq(&t->cpu_timers.lock);
    cpu_timer_stop(&s.timer);
    u64 now = cpu_timer_now(t, &s.timer);
    spin_unlock_irq(&t->cpu_timers.lock, flags);
    *left = now < at ? at - now : 0;
    return *left ? err : 0;
}

static s32 sleep_on_process(u32 flags, u32 request, u32 left_addr, bool wide)
{
    struct thread *t = current;
    struct cpu_timer clock = { .clock = CPU_TIME_ALL };
    u64 at, left;
    int err = time_from_user(request, wide, &at);
    if (err)
        return err;
    if (!(flags & TIMER_ABSTIME)) {
        at += cpu_timer_now(t->task, &clock);
        if (t->restart_deadline)
            at = t->restart_deadline;
        t->restart_deadline = 0;
    }
    if (!sleep_on_cpu_time(at, &left))
        return 0;
    if (flags & TIMER_ABSTIME)
        return -ERESTARTNOHAND;
    if (left_addr && time_to_user(left_addr, wide, left))
        return -EFAULT;
    t->restart_deadline = at;
    return -ERESTARTNOHAND;
}

// --- the calls --------------------------------------------------------------

s32 sys_nanosleep(u32 duration, u32 left)
{
    return sleep_relative(duration, left, false);
}

static s32 sleep_on_clock(u32 clock, u32 flags, u32 request, u32 left,
                          bool wide)
{
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_MONOTONIC:
    case CLOCK_BOOTTIME: // the machine is never suspended
        return flags & TIMER_ABSTIME ? sleep_absolute(clock, request, wide)
                                     : sleep_relative(request, left, wide);
    case CLOCK_PROCESS_CPUTIME_ID:
        return sleep_on_process(flags, request, left, wide);
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_MONOTONIC_COARSE:
        return -EOPNOTSUPP;
    default:
        return -EINVAL;
    }
}

TIME_TWINS(clock_nanosleep, clock_nanosleep_time64,
           (u32 clock, u32 flags, u32 duration, u32 left),
           sleep_on_clock(clock, flags, duration, left, wide))
