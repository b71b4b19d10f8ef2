// Waiting for events on several files at once: poll, select and variants.
#pragma once

#include "kernel/fs/file.h"
#include "kernel/sync/waitq.h"

#define POLLRDNORM 0x40
#define POLLWRNORM 0x100
#define POLL_ALWAYS (POLLERR | POLLHUP | POLLNVAL)
#define POLL_WAITERS_INLINE 8u

// The queues on which one thread waits. Files register their queues in the
// first round only (poll_register ignores a NULL poll_wait).
struct poll_wait {
    u32 count;
    int err; // -ENOMEM: a queue could not be registered
    struct waiter waiters[POLL_WAITERS_INLINE];
    struct poll_more *more; // further blocks
};

// One polled file.
struct poll_slot {
    struct fd_ref ref; // file NULL: skip
    u32 events;        // wanted, POLL_ALWAYS included
    u32 found;
};

// Waits until a slot's file has a wanted event, or until `deadline`
// (clock_now_ns units; 0: only checks). Returns the number of slots with
// events, 0 on timeout, -ENOMEM, -EINTR on a signal. The caller owns the
// references.
int poll_files(struct poll_slot *slots, u32 count, u64 deadline);
