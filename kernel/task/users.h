// Resource accounting per user. Tasks and memory are counted on demand by a
// walk over the tasks: per-user counters would have to follow shared memory,
// and the numbers are rarely needed. Threads are counted as they come and go,
// as each fork of a user that has many asks.
//
// Memory for files of a tmpfs, pipes, phones with their calls, file locks and
// queued signals is charged to the user, unless it is root, because neither the
// end of a task nor a limit of its own bounds it. A user may be charged an
// eighth of the low zone at most, so that memory is left for other users.
// (Root's part of memory is not available to users anyway: kernel/mm/frame.c.)
//
// An object is charged when it is created, with the most memory that it can
// hold: so frequent operations (writes to a pipe, calls) need no accounting.
// Files grow, and are charged by the page. An object records its payer, the
// real user for which it was created, even if another user has it later.
//
// A payer is the record of a user. It exists while the user has a task, or
// something is charged to it.
#pragma once

#include "lib/types.h"

struct payer;
struct task;

// Charges the user. *out gets the payer to discharge later: NULL for root,
// which is not limited. False: it would exceed the user's share, or there is no
// memory. Any context but NMI.
bool user_charge(u32 uid, u32 bytes, struct payer **out);
// Charges the current task's real user.
bool charge_current(u32 bytes, struct payer **out);
// Charges more for an object that has this payer; NULL: true.
bool payer_charge(struct payer *p, u32 bytes);
void payer_discharge(struct payer *p, u32 bytes);

static inline void user_discharge(struct payer *p, u32 bytes)
{
    if (unlikely(p))
        payer_discharge(p, bytes);
}

// Sets the payer of a task: for a new one, its creator's; or the task's real
// user is about to change. False, and no change: there is no memory. With the
// lock of the task held from which the user is known.
// For a task that is in the table tasks_lock is held, too.
bool payer_set(struct task *t, u32 uid);
// The CPU share of the task's threads: NULL without fair=user. tasks_lock held.
struct cpu_share *payer_share(const struct task *t);
// The task is freed.
void payer_leave(struct task *t);
// The task has n threads more (-1u: one less): counts them for its user.
// tasks_lock held.
void payer_add_threads(const struct task *t, u32 n);
// How many threads the task's user has.
u32 payer_threads(const struct task *t);
// For time that the kernel spends for the task's user: moves the time until
// which the user has paid by `ns`, from `least` at the earliest. Returns it.
// Any context but NMI.
u64 payer_pay_time(const struct task *t, u64 least, u64 ns);

// The most that may be charged to one user, in bytes.
u32 user_share(void);

struct user_statistics {
    u32 uid, tasks, threads;
    u32 pages; // resident pages and page tables of its tasks; shared pages
               // count for each task
    u32 held;  // bytes charged
};
// Statistics of the first user from `uid` on that has tasks or charged memory.
// False: there is none. Takes tasks_lock.
bool users_next(u32 uid, struct user_statistics *out);
