#include "kernel/task/limits.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/task/task.h"
#include "kernel/task/users.h"

#define SIGPENDING_MAX 4096u // bounded: queued signals use kernel memory

const struct limit_pair limits_first[LIMITS] = {
    [LIMIT_CPU] = { LIMIT_NONE, LIMIT_NONE },
    [LIMIT_FSIZE] = { LIMIT_NONE, LIMIT_NONE },
    [LIMIT_DATA] = { LIMIT_NONE, LIMIT_NONE },
    [LIMIT_STACK] = { MIB(8), LIMIT_NONE },
    [LIMIT_CORE] = { 0, LIMIT_NONE },
    [LIMIT_RSS] = { LIMIT_NONE, LIMIT_NONE },
    [LIMIT_NPROC] = { LIMIT_NONE, LIMIT_NONE },
    [LIMIT_NOFILE] = { FD_MAX, FD_MAX },
    [LIMIT_MEMLOCK] = { LIMIT_NONE, LIMIT_NONE },
    [LIMIT_AS] = { LIMIT_NONE, LIMIT_NONE },
    [LIMIT_LOCKS] = { LIMIT_NONE, LIMIT_NONE },
    [LIMIT_SIGPENDING] = { 1024, SIGPENDING_MAX },
    [LIMIT_MSGQUEUE] = { LIMIT_NONE, LIMIT_NONE },
    [LIMIT_NICE] = { 0, 0 },
    [LIMIT_RTPRIO] = { 0, 0 },
    [LIMIT_RTTIME] = { LIMIT_NONE, LIMIT_NONE },
};

// --- CPU time ---------------------------------------------------------------

static void cpu_time_is_up(struct cpu_timer *timer)
{
    struct task *t = container_of(timer, struct task, cpu_limit);
    u32 hard = READ_ONCE(t->limits[LIMIT_CPU].hard);
    u64 now = cpu_timer_now(t, timer);
    if (hard != LIMIT_NONE && now >= (u64)hard * NSEC_PER_SEC) {
        signal_send_task(t, SIGKILL, NULL);
        return;
    }
    struct siginfo info = { .signo = SIGXCPU, .code = SI_KERNEL };
    signal_send_task(t, SIGXCPU, &info);
    u64 next = now + NSEC_PER_SEC;
    if (hard != LIMIT_NONE)
        next = MIN(next, (u64)hard * NSEC_PER_SEC);
    cpu_timer_set(t, timer, next);
}

static void limit_cpu_time(struct task *t)
{
    struct limit_pair *l = &t->limits[LIMIT_CPU];
    u32 soft = READ_ONCE(l->soft), first = MIN(soft, READ_ONCE(l->hard));
    u32 flags = spin_lock_irq(&t->cpu_timers.lock);
    cpu_timer_stop(&t->cpu_limit);
    if (first != LIMIT_NONE)
        cpu_timer_set(t, &t->cpu_limit, (u64)MAX(first, 1u) * NSEC_PER_SEC);
    spin_unlock_irq(&t->cpu_timers.lock, flags);
}

// --- setting limits ---------------------------------------------------------

// No locks for `child`: no other thread knows it yet.
void limits_inherit(struct task *child, struct task *parent)
{
    for (u32 i = 0; i < LIMITS; i++) {
        child->limits[i].soft = READ_ONCE(parent->limits[i].soft);
        child->limits[i].hard = READ_ONCE(parent->limits[i].hard);
    }
    cpu_timer_init(&child->cpu_limit, CPU_TIME_ALL, NULL, cpu_time_is_up);
    if (child->limits[LIMIT_CPU].soft == LIMIT_NONE)
        return;
    limit_cpu_time(child);
    cpu_timers_begin(&child->cpu_timers);
}

void limits_apply(struct task *t, struct aspace *as)
{
    WRITE_ONCE(as->stack_limit, READ_ONCE(t->limits[LIMIT_STACK].soft));
    WRITE_ONCE(as->size_limit, READ_ONCE(t->limits[LIMIT_AS].soft));
    WRITE_ONCE(as->data_limit, READ_ONCE(t->limits[LIMIT_DATA].soft));
}

static void apply_to_space(struct task *t)
{
    struct aspace *as = task_aspace(t);
    if (!as)
        return;
    limits_apply(t, as);
    aspace_unref(as);
}

static u32 highest(enum limit which)
{
    if (which == LIMIT_NOFILE)
        return FD_MAX;
    return which == LIMIT_SIGPENDING ? SIGPENDING_MAX : LIMIT_NONE;
}

int limits_set(struct task *t, enum limit which, struct limit_pair pair)
{
    assert(which < LIMITS);
    struct limit_pair *l = &t->limits[which];
    if (pair.soft > pair.hard)
        return -EINVAL;
    if (pair.hard > highest(which) ||
        (pair.hard > READ_ONCE(l->hard) && !is_root()))
        return -EPERM;
    WRITE_ONCE(l->soft, pair.soft);
    WRITE_ONCE(l->hard, pair.hard);
    if (which == LIMIT_CPU) {
        limit_cpu_time(t);
        cpu_timers_changed(t);
    } else if (which == LIMIT_STACK || which == LIMIT_AS ||
               which == LIMIT_DATA) {
        apply_to_space(t);
    }
    return 0;
}

// --- threads of a user ------------------------------------------------------

int limits_check_threads(u32 share)
{
    struct task *t = current_task();
    u32 uid = READ_ONCE(t->uid);
    u32 most = MIN(READ_ONCE(t->limits[LIMIT_NPROC].soft), share);
    if (!uid || thread_count() < most)
        return 0;
    return payer_threads(t) < most ? 0 : -EAGAIN;
}
