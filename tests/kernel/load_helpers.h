// Load for tests that patch the kernel's code while it runs.
#pragma once

#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/time/timer.h"
#include "tests/kernel/point_helpers.h"

static bool load_over; // atomic

// Calls, locks, sleeps, threads, page tables and interrupts.
static inline void load(void *arg UNUSED)
{
    while (!__atomic_load_n(&load_over, __ATOMIC_ACQUIRE)) {
        void *p = vmap_alloc(3, PROT_R | PROT_W, FRAME_BUFFER);
        if (p)
            vmap_free(p, 3);
        kfree(kmalloc(100));
        thread_sleep_until(clock_now_ns() + 50 * NSEC_PER_USEC,
                           WAIT_UNINTERRUPTIBLE);
        sched_yield();
    }
    report_done();
}

// Two threads for each CPU.
static inline void start_load(void)
{
    reset();
    WRITE_ONCE(load_over, false);
    for (u32 i = 0; i < cpu_count * 2; i++)
        start(load, NULL);
}

// Waits also for `others` threads that the test has started since.
static inline void end_load(u32 others)
{
    __atomic_store_n(&load_over, true, __ATOMIC_RELEASE);
    wait_for(cpu_count * 2 + others);
}
