// Timeouts: a function called at a time, on the CPU that set it, in interrupt
// context. A timeout is embedded in its owner and may be set again by its own
// handler.
#pragma once

#include "arch/clock.h"
#include "lib/heap.h"

struct timeout {
    struct heap_node node;
    u64 deadline; // clock_now_ns units
    void (*fn)(struct timeout *t);
    struct cpu *cpu; // where it is queued; NULL: not queued
};

void timeouts_init_cpu(struct cpu *cpu);
void timeout_init(struct timeout *t, void (*fn)(struct timeout *t));
// (Re)arms. Any context but NMI. Only one thread sets or cancels a timeout at
// a time (the owner's business).
void timeout_set(struct timeout *t, u64 deadline);
// After it returns the handler does not run and will not: it waits for one that
// is running on another CPU. Returns whether it was pending. Not from handler.
bool timeout_cancel(struct timeout *t);
void timeouts_interrupt(void); // from arch's timer interrupt
