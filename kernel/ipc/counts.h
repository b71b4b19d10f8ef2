// How many messages a task has sent and received (the first seed, table 4.3).
//
// Embedded in struct task as `ipc_counts`. Each counter is written with the
// lock of the answerbox held that the message passes; read by system.tasks.
#pragma once

#include "lib/types.h"

struct ipc_counts {
    u64 call_sent, call_received;
    u64 answer_sent, answer_received;
    u64 irq_notif_received;
    u64 forwarded;
};
