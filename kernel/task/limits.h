// A task's resource limits: all are kept as they were set and inherited; those
// that the kernel could exceed at all are enforced.
#pragma once

#include "lib/types.h"

#define FD_MAX 1024u // descriptors of a task

struct task;

enum limit {     // Linux's numbers
    LIMIT_CPU,   // seconds: SIGXCPU each second from the soft, SIGKILL at the
                 // hard one
    LIMIT_FSIZE, // bytes to which writes and truncations make files: SIGXFSZ
    LIMIT_DATA,  // bytes of private writable memory
    LIMIT_STACK, // bytes, of the stack that grows
    LIMIT_CORE,  // none are written
    LIMIT_RSS,   // nothing is swapped out
    LIMIT_NPROC, // threads of a user that is not root
    LIMIT_NOFILE,
    LIMIT_MEMLOCK, // nothing is locked
    LIMIT_AS,      // bytes of areas
    LIMIT_LOCKS,   // not enforced on Linux either
    LIMIT_SIGPENDING,
    LIMIT_MSGQUEUE, // these three: there are none
    LIMIT_NICE,
    LIMIT_RTPRIO,
    LIMIT_RTTIME,
    LIMITS
};

#define LIMIT_NONE 0xffffffffu

struct limit_pair {
    u32 soft, hard; // LIMIT_NONE: there is none
};

// Those of the kernel, and so of init.
extern const struct limit_pair limits_first[LIMITS];

void limits_inherit(struct task *child, struct task *parent);
// 0, -EINVAL (the soft one is above the hard one), -EPERM: only root raises a
// hard limit, and nobody NOFILE and SIGPENDING above what the kernel can do.
int limits_set(struct task *t, enum limit which, struct limit_pair pair);
// -EAGAIN: the current task's user has as many threads as it may, or `share`.
// Root may have any number.
int limits_check_threads(u32 share);
// Takes over the limits on memory for a new address space of the current task.
struct aspace;
void limits_apply(struct task *t, struct aspace *as);
