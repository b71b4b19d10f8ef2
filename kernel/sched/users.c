// Fair shares of users (fair=user): a user's batch threads have together the
// weight of one thread, the mean of theirs, on all CPUs together. A thread's
// virtual time advances faster by the number of its user's threads that compete
// anywhere; so balance.c equalizes the shares of users across CPUs, too. As a
// slice costs a thread so much more virtual time, virtual times may differ more
// (LAG_MAX_BY_USER_NS).
//
// Without the argument no thread has a share, and each has its own weight.

#include "kernel/base/cmdline.h"
#include "kernel/base/log.h"
#include "kernel/sched/charge.h"
#include "lib/string.h"

KERNEL_ARG(fair, "fair=user: users get equal CPU time, however many tasks they "
                 "have; else tasks do");

struct branch sched_by_user; // constant after start-up

void sched_by_user_init(void)
{
    if (!arg_fair.present)
        return;
    if (strcmp(arg_fair.value, "user") == 0)
        branch_set(&sched_by_user, true);
    else
        log_printf("fair=%s: unknown; fair=user is what there is\n",
                   arg_fair.value);
}

struct cpu_share *sched_share(struct cpu_share *of_user)
{
    return branch_on(&sched_by_user) ? of_user : NULL;
}

void sched_set_share(struct thread *t, struct cpu_share *share)
{
    if (!t->share)
        return;
    u32 flags = irq_save();
    struct run_queue *rq = run_queue_lock_of(t);
    bool competes = t->competing;
    charge_compete(t, false);
    WRITE_ONCE(t->share, share);
    charge_compete(t, competes);
    spin_unlock(&rq->lock);
    irq_restore(flags);
}
