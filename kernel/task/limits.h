// A task's resource limits. All of them can be set and are inherited; those
// that a task could exceed on this kernel are enforced.
#pragma once

#include "lib/types.h"

#define FD_MAX 1024u // descriptors of a task

struct task;

enum limit {     // Linux's numbers
    LIMIT_CPU,   // seconds: SIGXCPU each second from the soft limit on, SIGKILL
                 // at the hard limit
    LIMIT_FSIZE, // size in bytes of files written or truncated: SIGXFSZ
    LIMIT_DATA,  // bytes of private writable memory
    LIMIT_STACK, // bytes of the stack
    LIMIT_CORE,  // not enforced: no core files are written
    LIMIT_RSS,   // not enforced: there is no swapping
    LIMIT_NPROC, // threads of a user that is not root
    LIMIT_NOFILE,
    LIMIT_MEMLOCK, // not enforced: no memory is locked
    LIMIT_AS,      // bytes of areas
    LIMIT_LOCKS,   // not enforced, as on Linux
    LIMIT_SIGPENDING,
    LIMIT_MSGQUEUE, // not enforced: there are no message queues
    LIMIT_NICE,     // 20 - lowest nice value that may be set
    LIMIT_RTPRIO,   // this and the next: not enforced, no real-time scheduling
    LIMIT_RTTIME,
    LIMITS
};

#define LIMIT_NONE 0xffffffffu

struct limit_pair {
    u32 soft, hard; // LIMIT_NONE: no limit
};

// The limits of the kernel task, inherited by init.
extern const struct limit_pair limits_first[LIMITS];

void limits_inherit(struct task *child, struct task *parent);
// 0, -EINVAL (the soft limit is above the hard limit), -EPERM: only root may
// raise a hard limit, and NOFILE and SIGPENDING have fixed maxima.
int limits_set(struct task *t, enum limit which, struct limit_pair pair);
// -EAGAIN: the current task's user has LIMIT_NPROC, or `share`, threads
// already. Root may have any number.
int limits_check_threads(u32 share);
// Sets the limits of a new address space of the task from the task's limits.
struct aspace;
void limits_apply(struct task *t, struct aspace *as);
