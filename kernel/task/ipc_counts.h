// Number of messages a task sent and received (the first seed, table 4.3).
//
// Lock-free 64-bit counters of 32-bit words. Writers: several threads of the
// task at once, by atomic adds (so a sequence counter, which has one writer,
// does not serve). Reader: system.tasks. A counter consists of its low word and
// the number of changes of that word's top bit (`flips`). A writer adds to
// `low`, then to `flips`, with release order; a reader loads `flips`, then
// `low`, with acquire order. So `low` may be one flip ahead of `flips`, never
// behind. The reader detects that by the parity of `flips`, and never returns a
// torn value.
#pragma once

#include "lib/types.h"

struct ipc_counter {
    u32 low, flips; // atomic
};

// clang-format off
#define IPC_COUNTS(C)     \
    C(call_sent)          \
    C(call_received)      \
    C(answer_sent)        \
    C(answer_received)    \
    C(irq_notif_received) \
    C(forwarded)
// clang-format on

#define IPC_COUNTER(name) struct ipc_counter name;
struct ipc_counters { // in struct task
    IPC_COUNTS(IPC_COUNTER)
};
#undef IPC_COUNTER

#define IPC_COUNT(name) u64 name;
struct ipc_counts { // their values
    IPC_COUNTS(IPC_COUNT)
};
#undef IPC_COUNT

static inline void ipc_count(struct ipc_counter *c)
{
    u32 now = __atomic_add_fetch(&c->low, 1, __ATOMIC_RELEASE);
    if (unlikely(!(now & 0x7fffffff)))
        __atomic_fetch_add(&c->flips, 1, __ATOMIC_RELEASE);
}

static inline u64 ipc_counter_read(const struct ipc_counter *c)
{
    u32 flips = __atomic_load_n(&c->flips, __ATOMIC_ACQUIRE);
    u32 low = __atomic_load_n(&c->low, __ATOMIC_ACQUIRE);
    flips += (flips ^ low >> 31) & 1;
    return (u64)flips << 31 | (low & 0x7fffffff);
}
