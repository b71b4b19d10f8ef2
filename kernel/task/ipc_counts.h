// How many messages a task has sent and received (the first seed, table 4.3).
//
// Several threads of a task count at the same time, and system.tasks reads,
// without a lock. (So no sequence counter serves: that has one writer.) A
// counter is its low word and how often the top bit of that has changed. Who
// reads `flips` first and `low` after may find `low` one flip further (the
// other store is on its way), never the other way round, and sees that by the
// parity: so no 64-bit value is ever torn.
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
struct ipc_counts { // what they say
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
