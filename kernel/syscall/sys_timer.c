// POSIX timers: timer_create and related calls. A task's timers are in a table
// that its first timer allocates; exec ends them, and children do not inherit
// them.
//
// The table and the timers are guarded by the task's cpu_timers.lock. A timer
// is freed by the thread that took it out of the table.

#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_types.h"
#include "kernel/task/task.h"

#define TIMERS_MAX 1024u // per task

struct posix_timer {
    struct itimer itimer;
    u32 clock;
    struct thread *of, *to; // referenced, or NULL: source of CPU time; receiver
};

struct posix_timers {
    u32 last; // the last assigned id
    struct posix_timer *timers[TIMERS_MAX];
};

static u32 lock_timers(void)
{
    return spin_lock_irq(&current_task()->cpu_timers.lock);
}

static void unlock_timers(u32 flags)
{
    spin_unlock_irq(&current_task()->cpu_timers.lock, flags);
}

// The lock is held. NULL: there is no timer with this id.
static struct posix_timer *find(u32 id)
{
    spin_assert_held(&current_task()->cpu_timers.lock);
    struct posix_timers *all = current_task()->posix_timers;
    return all && id < TIMERS_MAX ? all->timers[id] : NULL;
}

static void free_timer(struct posix_timer *p)
{
    assert_may_sleep();
    itimer_end(&p->itimer);
    if (p->of)
        thread_unref(p->of);
    if (p->to)
        thread_unref(p->to);
    kfree(p);
}

// --- creating ---------------------------------------------------------------

static int table_create(void)
{
    struct task *t = current_task();
    if (READ_ONCE(t->posix_timers))
        return 0;
    struct posix_timers *all = kzalloc(sizeof(*all));
    if (!all)
        return -ENOMEM;
    all->last = TIMERS_MAX - 1;
    u32 flags = lock_timers();
    if (!t->posix_timers) {
        WRITE_ONCE(t->posix_timers, all);
        all = NULL;
    }
    unlock_timers(flags);
    kfree(all); // another thread has allocated the table
    return 0;
}

// Enters the timer into the table and returns its id, which its signal also
// carries (and as its value, if the caller gave none); -EAGAIN: the table is
// full.
static int publish(struct posix_timer *p, bool id_is_value)
{
    int id = -EAGAIN;
    u32 flags = lock_timers();
    struct posix_timers *all = current_task()->posix_timers;
    assert_checked(all && all->last < TIMERS_MAX);
    for (u32 i = 1; i <= TIMERS_MAX && id < 0; i++) {
        u32 candidate = (all->last + i) % TIMERS_MAX;
        if (!all->timers[candidate])
            id = (int)candidate;
    }
    if (id >= 0) {
        p->itimer.info.pid_or_addr = (u32)id; // si_timerid
        if (id_is_value)
            p->itimer.info.status = id;
        all->last = (u32)id;
        all->timers[id] = p;
    }
    unlock_timers(flags);
    return id;
}

#define SIGEV_SIGNAL 0u
#define SIGEV_NONE 1u
#define SIGEV_THREAD 2u
#define SIGEV_THREAD_ID 4u

struct sigevent32 {
    u32 value, signo, notify, tid;
    u32 pad[12];
};
_Static_assert(sizeof(struct sigevent32) == 64, "sigevent of the ABI");

// Sets the action on expiry.
static int set_event(struct posix_timer *p, const struct sigevent32 *e,
                     struct siginfo *info)
{
    if (e->notify == SIGEV_NONE)
        return 0;
    if (e->notify != SIGEV_SIGNAL && e->notify != SIGEV_THREAD &&
        e->notify != SIGEV_THREAD_ID)
        return -EINVAL;
    if (e->signo < 1 || e->signo > NSIG)
        return -EINVAL;
    info->signo = (s32)e->signo;
    info->status = (s32)e->value; // si_value
    if (e->notify != SIGEV_THREAD_ID)
        return 0;
    p->to = thread_find(e->tid);
    return p->to && p->to->task == current_task() ? 0 : -EINVAL;
}

static int init_timer(struct posix_timer *p, u32 clock,
                      const struct sigevent32 *event)
{
    struct siginfo info = { .code = SI_TIMER };
    struct task *t = current_task();
    *p = (struct posix_timer){ .clock = clock };
    int err = set_event(p, event, &info);
    itimer_init(&p->itimer, t, &info);
    p->itimer.to = p->to;
    if (err)
        return err;
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_MONOTONIC:
    case CLOCK_BOOTTIME:
        return 0;
    case CLOCK_PROCESS_CPUTIME_ID:
        itimer_use_cpu(&p->itimer, CPU_TIME_ALL, NULL);
        return 0;
    case CLOCK_THREAD_CPUTIME_ID:
        thread_ref(p->of = current);
        itimer_use_cpu(&p->itimer, CPU_TIME_ALL, p->of);
        return 0;
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_MONOTONIC_COARSE:
        return -EOPNOTSUPP;
    default:
        return -EINVAL;
    }
}

static int remove_timer(u32 id)
{
    u32 flags = lock_timers();
    struct posix_timer *p = find(id);
    if (p)
        current_task()->posix_timers->timers[id] = NULL;
    unlock_timers(flags);
    if (!p)
        return -EINVAL;
    free_timer(p);
    return 0;
}

s32 sys_timer_create(u32 clock, u32 notify, u32 timer)
{
    struct sigevent32 event = { .signo = SIGALRM };
    if (notify && copy_from_user(&event, notify, sizeof(event)))
        return -EFAULT;
    int err = table_create();
    if (err)
        return err;
    struct posix_timer *p = kmalloc(sizeof(*p));
    if (!p)
        return -EAGAIN;
    err = init_timer(p, clock, &event);
    int id = err ? err : publish(p, !notify);
    if (id < 0) {
        free_timer(p);
        return id;
    }
    if (user_store_u32(timer, (u32)id)) {
        remove_timer((u32)id);
        return -EFAULT;
    }
    return 0;
}

s32 sys_timer_delete(u32 timer)
{
    return remove_timer(timer);
}

// --- using ------------------------------------------------------------------

#define TIMER_ABSTIME 1u

struct setting { // ns
    u64 value, interval;
};

static u32 timespec_size(bool wide)
{
    return wide ? sizeof(struct timespec64) : sizeof(struct timespec32);
}

static int setting_to_user(u32 addr, bool wide, const struct setting *s)
{
    int err = time_to_user(addr, wide, s->interval);
    return err ? err : time_to_user(addr + timespec_size(wide), wide, s->value);
}

// The lock is held.
static struct setting get(const struct posix_timer *p)
{
    spin_assert_held(&current_task()->cpu_timers.lock);
    return (struct setting){ itimer_left(&p->itimer), p->itimer.interval };
}

// The lock is held. Setting CLOCK_REALTIME affects its absolute timers, but not
// its relative ones.
static void set(struct posix_timer *p, bool absolute, const struct setting *new)
{
    spin_assert_held(&current_task()->cpu_timers.lock);
    struct itimer *t = &p->itimer;
    itimer_set(t, 0, 0);
    if (p->clock == CLOCK_REALTIME)
        t->clock = absolute ? ITIMER_ON_WALL : ITIMER_ON_UPTIME;
    if (!new->value)
        return;
    u64 from = absolute ? 0 : itimer_now(t);
    itimer_set(t, from + new->value, new->interval);
}

static s32 set_time(u32 id, u32 mode, u32 new_addr, u32 old_addr, bool wide)
{
    struct setting new, old = { 0, 0 };
    if (!new_addr)
        return -EINVAL;
    int err = time_from_user(new_addr, wide, &new.interval);
    if (!err)
        err = time_from_user(new_addr + timespec_size(wide), wide, &new.value);
    if (err)
        return err;
    u32 flags = lock_timers();
    struct posix_timer *p = find(id);
    if (p) {
        old = get(p);
        set(p, mode & TIMER_ABSTIME, &new);
    }
    unlock_timers(flags);
    if (!p)
        return -EINVAL;
    if (READ_ONCE(current_task()->cpu_timers.active))
        cpu_timers_changed(current_task());
    return old_addr ? setting_to_user(old_addr, wide, &old) : 0;
}

TIME_TWINS(timer_settime, timer_settime64,
           (u32 timer, u32 flags, u32 value, u32 old_value),
           set_time(timer, flags, value, old_value, wide))

static s32 get_time(u32 id, u32 addr, bool wide)
{
    struct setting s = { 0, 0 };
    u32 flags = lock_timers();
    const struct posix_timer *p = find(id);
    if (p)
        s = get(p);
    unlock_timers(flags);
    return p ? setting_to_user(addr, wide, &s) : -EINVAL;
}

TIME_TWINS(timer_gettime, timer_gettime64, (u32 timer, u32 value),
           get_time(timer, value, wide))

s32 sys_timer_getoverrun(u32 timer)
{
    u32 flags = lock_timers();
    const struct posix_timer *p = find(timer);
    s32 overrun = p ? (s32)itimer_overrun(&p->itimer) : -EINVAL;
    unlock_timers(flags);
    return overrun;
}

// --- exec and exit ----------------------------------------------------------

// Called by the task's only thread, or by the last one that runs.
static void end_all(struct task *t)
{
    assert_checked(!READ_ONCE(t->threads_running) ||
                   READ_ONCE(t->thread_count) == 1);
    struct posix_timers *all = t->posix_timers;
    if (!all)
        return;
    for (u32 i = 0; i < TIMERS_MAX; i++) {
        if (all->timers[i])
            free_timer(all->timers[i]);
    }
    t->posix_timers = NULL;
    kfree(all);
}

static const struct task_observer timers_observer = { .execed = end_all,
                                                      .ended = end_all };
TASK_OBSERVER(timers_observer);
