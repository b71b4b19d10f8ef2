// How many messages a task has sent and received (the first seed, table 4.3).
//
// Embedded in struct task as `ipc_counts`. Threads of the task count at the
// same time, and system.tasks reads: each access is atomic, which for 64 bits
// takes the alignment.
#pragma once

#include "lib/types.h"

typedef u64 ipc_counter __attribute__((aligned(8)));

struct ipc_counts {
    ipc_counter call_sent, call_received;
    ipc_counter answer_sent, answer_received;
    ipc_counter irq_notif_received;
    ipc_counter forwarded;
};

static inline void ipc_count(ipc_counter *c)
{
    __sync_fetch_and_add(c, 1);
}

static inline u64 ipc_counter_read(const ipc_counter *c)
{
    return __sync_fetch_and_add((ipc_counter *)c, 0);
}
