// alarm, setitimer, getitimer.

#include "kernel/base/log.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_types.h"
#include "kernel/task/task.h"

struct setting { // ns
    u64 value, interval;
};

static struct setting get(const struct itimer *t)
{
    return (struct setting){ itimer_left(t), t->interval };
}

static void init(struct task *task, u32 which)
{
    spin_assert_held(&task->cpu_timers.lock);
    assert_checked(which < ITIMERS);
    static const u8 signals[ITIMERS] = { SIGALRM, SIGVTALRM, SIGPROF };
    struct itimer *t = &task->itimers[which];
    struct siginfo info = { .signo = signals[which], .code = SI_KERNEL };
    itimer_init(t, task, &info);
    if (which != ITIMER_REAL)
        itimer_use_cpu(
            t, which == ITIMER_VIRTUAL ? CPU_TIME_USER : CPU_TIME_ALL, NULL);
}

// Returns the previous setting.
static struct setting swap(u32 which, const struct setting *new)
{
    assert_checked(which < ITIMERS);
    struct task *task = current_task();
    struct itimer *t = &task->itimers[which];
    u32 flags = spin_lock_irq(&task->cpu_timers.lock);
    if (!t->used)
        init(task, which);
    struct setting old = get(t);
    u64 next = new->value ? itimer_now(t) + new->value : 0;
    itimer_set(t, next, new->value ? new->interval : 0);
    spin_unlock_irq(&task->cpu_timers.lock, flags);
    if (next && which != ITIMER_REAL)
        cpu_timers_changed(current_task());
    return old;
}

// Rounds to the nearest second, but never down to 0.
s32 sys_alarm(u32 seconds)
{
    struct setting new = { (u64)seconds * NSEC_PER_SEC, 0 };
    u64 left = swap(ITIMER_REAL, &new).value;
    if (!left)
        return 0;
    return (s32)MAX((left + NSEC_PER_SEC / 2) / NSEC_PER_SEC, 1ull);
}

static int timeval_to_ns(const struct timeval32 *v, u64 *ns)
{
    if (v->sec < 0 || v->usec < 0 || v->usec >= 1000000)
        return -EINVAL;
    *ns = (u64)v->sec * NSEC_PER_SEC + (u64)v->usec * NSEC_PER_USEC;
    return 0;
}

static struct timeval32 ns_to_timeval(u64 ns)
{
    u64 us = DIV_ROUND_UP(ns, NSEC_PER_USEC);
    return (struct timeval32){ (s32)(us / 1000000), (s32)(us % 1000000) };
}

static int setting_to_user(u32 addr, const struct setting *s)
{
    struct timeval32 pair[2] = { ns_to_timeval(s->interval),
                                 ns_to_timeval(s->value) };
    return copy_to_user(addr, pair, sizeof(pair));
}

s32 sys_setitimer(u32 timer, u32 value, u32 old_value)
{
    struct timeval32 pair[2] = { { 0, 0 }, { 0, 0 } };
    struct setting new;
    if (timer >= ITIMERS)
        return -EINVAL;
    if (value && copy_from_user(pair, value, sizeof(pair)))
        return -EFAULT;
    if (timeval_to_ns(&pair[0], &new.interval) ||
        timeval_to_ns(&pair[1], &new.value))
        return -EINVAL;
    struct setting old = swap(timer, &new);
    return old_value ? setting_to_user(old_value, &old) : 0;
}

s32 sys_getitimer(u32 timer, u32 value)
{
    if (timer >= ITIMERS)
        return -EINVAL;
    struct task *task = current_task();
    u32 flags = spin_lock_irq(&task->cpu_timers.lock);
    struct setting now = get(&task->itimers[timer]);
    spin_unlock_irq(&task->cpu_timers.lock, flags);
    return setting_to_user(value, &now);
}
