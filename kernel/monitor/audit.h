// Audit: sum of accounts == elapsed TSC? All accounts are read at one instant.
#pragma once

#include "kernel/time/ledger.h"

struct audit {
    u32 cpus;
    // Sums over the accounts of all threads, living and dead: equal to the sums
    // of user and kernel over the CPUs.
    u64 threads_user, threads_kernel;
    // Of each CPU: user + kernel + irq + idle + start_up == elapsed.
    struct ledger_sums cpu[];
};

struct audit *audit_alloc(void); // for kfree; NULL: no memory

// Stops all CPUs (for some microseconds, and 21 instructions a thread:
// stop_machine_longest). Interrupts on, no locks held.
void audit_take(struct audit *out);
