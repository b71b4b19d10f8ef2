// The audit: do the books balance? Everything is read at one instant.
#pragma once

#include "kernel/time/ledger.h"

struct audit {
    u32 cpus;
    // Of each: user + kernel + irq + idle + start_up == elapsed.
    struct ledger_sums cpu[CPU_MAX];
    // What the accounts of all threads say, living and dead: equal to the sums
    // of user and kernel over the CPUs.
    u64 threads_user, threads_kernel;
};

// Stops all CPUs for a moment (some microseconds and 21 instructions a
// thread: meeting_longest). Interrupts on, no locks held.
void audit_take(struct audit *out);
