// Credentials: the user and groups for which a task acts, and the permission
// checks.
//
// Credentials belong to the whole task (Linux: to each thread). They are
// separate words in struct task: changes are made with the task's lock held,
// readers take no lock (marked accesses). Effective user 0 may do everything;
// there are no capabilities.
#pragma once

#include "lib/types.h"

#define GROUPS_MAX 32u // supplementary groups of a task

struct task;

// The real, the effective and the saved id.
struct id_triple {
    u32 real, effective, saved;
};
#define ID_UNCHANGED (~0u)

// setresuid, setresgid of the current task. A task that is not root may only
// choose among its current three ids. 0, -EPERM; -EAGAIN: no memory for the
// record of a new user.
int credentials_set_users(struct id_triple ids);
int credentials_set_groups(struct id_triple ids);
// setgroups. 0, -EPERM, -EINVAL: too many.
int credentials_set_more_groups(const u32 *groups, u32 count);
void credentials_inherit(struct task *child, struct task *parent);
// exec: sets the credentials of the new program, before it can be inspected.
// With `guarded` other tasks of its user may not inspect it.
void credentials_exec(u32 euid, u32 egid, bool guarded);

// Whether the current task (is_root() is in task.h):
bool is_in_group(u32 gid);       // has it as effective or supplementary group
bool is_in_more_groups(u32 gid); // has it as supplementary group
bool owns(u32 uid);              // has this effective user, or is root
// may use resources that are reserved for root. Decided by its real user: what
// a set-user-id program uses counts for the user that started it.
bool may_use_root_reserve(void);
// may send `sig` to the task: it has the same user, or sends SIGCONT within a
// session.
bool may_signal(const struct task *t, int sig);
// may change how the task is scheduled.
bool may_schedule(const struct task *t);
// may inspect the task's memory, descriptors and registers, and profile it: all
// ids are those of its user, and it does not run with the rights, or hold
// secrets, of another user. True for itself.
bool may_inspect(const struct task *t);
// Whether the task `who` may inspect `t`.
bool credentials_may_inspect(const struct task *who, const struct task *t);
