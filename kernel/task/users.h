// What each user has. Tasks, threads and memory are counted by a walk over the
// tasks when somebody asks: a count of each user's own would have to follow
// forks, changes of user and shared memory, and nobody needs it often.
//
// Charged is what the kernel holds for a user that is not root: pipes, phones
// with their calls, file locks and queued signals, none of which a task's end
// or a limit of its own bounds. All of it is an eighth of the low zone at most,
// so that a user leaves the other ones room (what is root's it cannot take
// anyway: kernel/mm/frame.c).
//
// An object is charged when it is made, with the most that it can come to hold:
// so what is used often (writes to a pipe, calls) has nothing to count. It
// remembers its payer, the real user it was made for, whoever has it later; the
// payer's account is there while something is charged to it.
#pragma once

#include "lib/types.h"

struct payer;

// Charges that user. *out gets who is to be discharged: NULL for root, which
// may have any number. False: the user has its share, or there is no memory.
// Any context but NMI.
bool user_charge(u32 uid, u32 bytes, struct payer **out);
// The current task's user.
bool charge_current(u32 bytes, struct payer **out);
void payer_discharge(struct payer *p, u32 bytes);

static inline void user_discharge(struct payer *p, u32 bytes)
{
    if (unlikely(p))
        payer_discharge(p, bytes);
}

// The most that is held for one user.
u32 user_share(void);

struct user_figures {
    u32 uid, tasks, threads;
    u32 pages; // of its tasks, page tables too; shared ones with each of them
    u32 held;  // bytes that are charged
};
// Of the first user from `uid` on that has tasks, or to whom something is
// charged. False: there is none. Takes tasks_lock.
bool users_next(u32 uid, struct user_figures *out);
