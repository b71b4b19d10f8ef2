// Advisory file locks: flock() and the record locks of fcntl().
#pragma once

#include "kernel/fs/vfs.h"

// In the order of fcntl's constants.
enum lock_type { LOCK_READ, LOCK_WRITE, LOCK_NONE };

// flock() locks belong to an open file and cover all of it; record locks belong
// to a descriptor table. The two kinds do not conflict with each other.
struct lock_range {
    enum lock_type type;
    bool record;
    u32 task;       // the owner's id, for F_GETLK
    u64 start, end; // both inclusive
};

// Locks, changes or (LOCK_NONE) unlocks a range of `v` for `owner`, which has
// the file open and drops the locks when it is closed. `wait`: sleeps until the
// range is free. 0, -EAGAIN, -ENOLCK (no memory, or the user's limit is
// reached), -ERESTARTSYS, or -EDEADLK: the holder of a record lock waits,
// directly or through others, for one of the owner's.
int locks_set(struct vnode *v, const void *owner, const struct lock_range *r,
              bool wait);
// Replaces *r by a lock that conflicts with it, or sets its type to LOCK_NONE.
void locks_test(struct vnode *v, const void *owner, struct lock_range *r);
// Drops an owner's locks on `v`. Costs nothing if it has never had a lock.
void locks_drop(struct vnode *v, const void *owner);
// Called when the vnode is freed: no locks are left.
struct file_locks;
void locks_free(struct file_locks *fl);
