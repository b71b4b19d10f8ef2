// System calls on scheduling: yielding, nice values, affinity.

#include "kernel/syscall/syscall.h"
#include "kernel/task/task.h"

s32 sys_sched_yield(void)
{
    sched_yield();
    return 0;
}

static int clamp_nice(s32 nice)
{
    return nice < -20 ? -20 : nice > 19 ? 19 : nice;
}

// Raising the nice value is free; lowering is limited by RLIMIT_NICE
// (setrlimit(2)).
static bool may_set_nice(const struct task *t, int nice)
{
    return is_root() || nice >= READ_ONCE(t->nice) ||
           20 - nice <= (s64)READ_ONCE(t->limits[LIMIT_NICE].soft);
}

s32 sys_nice(s32 change)
{
    s32 by = (s32)change < -40 ? -40 : (s32)change > 40 ? 40 : (s32)change;
    int nice = clamp_nice(READ_ONCE(current_task()->nice) + by);
    if (!may_set_nice(current_task(), nice))
        return -EPERM;
    u32 flags = spin_lock_irq(&tasks_lock);
    task_set_nice(current_task(), nice);
    spin_unlock_irq(&tasks_lock, flags);
    return 0;
}

#define PRIO_PROCESS 0
#define PRIO_PGRP 1
#define PRIO_USER 2

struct nice_search {
    u32 which, who;
    bool set, found;
    int nice; // to set, or the lowest found
    s32 err;  // for a task that the caller may not change
};

static void set_nice(struct nice_search *s, struct task *t)
{
    if (!may_schedule(t))
        s->err = -EPERM;
    else if (!may_set_nice(t, s->nice))
        s->err = -EACCES;
    else
        task_set_nice(t, s->nice);
}

static void visit_nice(struct task *t, void *arg)
{
    struct nice_search *s = arg;
    bool hit = s->which == PRIO_PROCESS ? t->id == s->who
               : s->which == PRIO_PGRP  ? t->pgid == s->who
                                        : READ_ONCE(t->uid) == s->who;
    if (!hit)
        return;
    int nice = READ_ONCE(t->nice);
    if (s->set)
        set_nice(s, t);
    else if (!s->found || nice < s->nice)
        s->nice = nice;
    s->found = true;
}

static s32 walk_nice(struct nice_search *s)
{
    if (s->which > PRIO_USER)
        return -EINVAL;
    struct task *self = current_task();
    if (!s->who)
        s->who = s->which == PRIO_PROCESS ? self->id
                 : s->which == PRIO_PGRP  ? READ_ONCE(self->pgid)
                                          : READ_ONCE(self->uid);
    u32 flags = spin_lock_irq(&tasks_lock);
    task_for_each_locked(visit_nice, s);
    spin_unlock_irq(&tasks_lock, flags);
    return s->found ? s->err : -ESRCH;
}

s32 sys_getpriority(u32 kind, u32 id)
{
    struct nice_search s = { .which = kind, .who = id };
    s32 err = walk_nice(&s);
    return err ? err : 20 - s.nice; // 40..1, as the raw call returns it
}

s32 sys_setpriority(u32 kind, u32 id, s32 priority)
{
    struct nice_search s = {
        kind, id, true, false, clamp_nice((s32)priority), 0
    };
    return walk_nice(&s);
}

static struct thread *thread_or_self(u32 tid)
{
    if (tid)
        return thread_find(tid);
    thread_ref(current);
    return current;
}

// As Linux: a shorter mask is filled up with zeros, and of a longer one the
// rest is ignored.
s32 sys_sched_setaffinity(u32 id, u32 size, u32 cpu_mask)
{
    struct cpu_set cpus = CPU_SET_EMPTY;
    if (copy_from_user(&cpus, cpu_mask, MIN(size, (u32)sizeof(cpus))))
        return -EFAULT;
    struct thread *t = thread_or_self(id);
    if (!t)
        return -ESRCH;
    int err = may_schedule(t->task) ? thread_set_affinity(t, &cpus) : -EPERM;
    thread_unref(t);
    return err;
}

// As Linux: the mask must have a bit for each CPU that exists. What is stored,
// and returned as its size, is the words of these CPUs.
s32 sys_sched_getaffinity(u32 id, u32 size, u32 cpu_mask)
{
    u32 stored = cpu_set_words * (u32)sizeof(u32);
    if (size < stored || (size & 3))
        return -EINVAL;
    struct thread *t = thread_or_self(id);
    if (!t)
        return -ESRCH;
    struct cpu_set cpus = cpu_set_and(&t->affinity, &t->affinity);
    thread_unref(t);
    if (copy_to_user(cpu_mask, &cpus, stored))
        return -EFAULT;
    return (s32)stored;
}
