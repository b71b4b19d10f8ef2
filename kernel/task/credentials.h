// Credentials: for which user and groups a task acts, and what that allows.
//
// A task has them as a whole (Linux: each thread). They are words of their own
// in struct task, marked: a task's lock guards each change, readers take none.
// User 0 (effective) may do everything; there are no capabilities.
#pragma once

#include "lib/types.h"

#define GROUPS_MAX 32u // that a task is in besides its group

struct task;

// The real, the effective and the saved id.
struct id_triple {
    u32 real, effective, saved;
};
#define ID_UNCHANGED (~0u)

// setresuid, setresgid of the current task: another value only of the three
// that there are, if it is not root. 0 or -EPERM.
int credentials_set_users(struct id_triple ids);
int credentials_set_groups(struct id_triple ids);
// setgroups. 0, -EPERM, -EINVAL: too many.
int credentials_set_more_groups(const u32 *groups, u32 count);
void credentials_inherit(struct task *child, struct task *parent);
// At exec, by the current task, before its new program can be looked into: for
// whom that acts. With `guarded` it is kept from others of its user.
void credentials_exec(u32 euid, u32 egid, bool guarded);

// The current task (is_root() is in task.h):
bool is_in_group(u32 gid);       // as its effective or further group
bool is_in_more_groups(u32 gid); // as a further one
bool owns(u32 uid);              // it is that user's or root's
// It may take what is kept for root: by its real user, as what a set-user-id
// program takes is taken by whoever started it.
bool has_roots_share(void);
// May send `sig` to the task: of the same user, or SIGCONT of a session.
bool may_signal(const struct task *t, int sig);
// May change how the task is scheduled.
bool may_schedule(const struct task *t);
// May look into its memory, descriptors and registers, and profile it: of the
// same user in every respect, and no program with rights, or secrets, of
// another one. True for itself.
bool may_inspect(const struct task *t);
// The same for `who` instead of the current task.
bool credentials_may_inspect(const struct task *who, const struct task *t);
