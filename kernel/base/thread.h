// The part of a thread that every layer may use: the first part of struct
// thread, whose rest belongs to the scheduler and the task layer
// (kernel/sched/thread.h).
#pragma once

#include "arch/cpu.h"
#include "arch/thread.h"

struct account { // what the ledger charges (kernel/time/ledger.h)
    u64 cycles;
};

struct thread_base {
    struct account total; // these three first: entry.S, ledger_nmi.h
    u64 user;             // of `total`; the rest is the kernel's
    u64 counted;          // of the rest: charged to calls and exceptions

    u32 tid; // tasks_lock; marked: exec may give it its task's id
    char name[16];
    void *kstack; // lowest address
    struct arch_thread arch;
    struct aspace *aspace;            // marked; NULL: the kernel's
    const char *wait_on;              // name of what it sleeps on; marked
    u32 altstack_base, altstack_size; // marked: samples read them
    u32 faults;                       // page faults, its own; marked
    struct lockdep_stack *mutexes;    // LOCKDEP: the mutexes it holds
    struct call_stack *traced;        // kernel/trace/calls.h; NULL: none
    bool is_user;                     // it has, or will get, a user mode
    bool must_exit;      // exec or exit of its task ends it (marked access)
    bool signal_pending; // a deliverable signal may be pending: check (marked
                         // access: set by others, read at each kernel exit)
};

static ALWAYS_INLINE struct thread_base *thread_base(struct thread *t)
{
    return (struct thread_base *)t;
}

static ALWAYS_INLINE struct thread_base *current_base(void)
{
    return (struct thread_base *)current;
}

// Writes "thread 5 (sh), task 5 (sh)". For reports: any context, no locks.
UPCALL void thread_describe(const struct thread *t, char *buf, size_t size);

// True when a deliverable (unblocked, not ignored) signal is pending for the
// current thread.
UPCALL bool signal_waiting(void);
// True when a signal that ends the current task is pending. A long operation
// that can stop with a partial result polls this. Thread context; costs one
// load when there is none.
UPCALL bool signal_fatal(void);
