// Threads and the scheduler: one run queue per CPU.
#pragma once

#include "arch/thread.h"
#include "kernel/debug/fail_alloc.h"
#include "kernel/exec/signal.h"
#include "kernel/sched/interactivity.h"
#include "kernel/sync/lockdep.h"
#include "kernel/sync/waitq.h"
#include "kernel/time/callout.h"
#include "kernel/time/ledger.h"

struct call_table;
struct task;

enum thread_state {
    THREAD_RUNNING,  // on a CPU
    THREAD_READY,    // in a run queue
    THREAD_SLEEPING, // waits; a signal does not wake it
    THREAD_WAITING,  // waits; a signal wakes it (interruptible)
    THREAD_STOPPED,  // by SIGSTOP and its kin
    THREAD_DEAD,
};

// Priority levels, 0 is the most urgent. See kernel/sched/sched.c for policy.
#define PRIORITY_LEVELS 32

struct thread {
    struct account total; // first, these three: the ledger knows them
    u64 user;             // of `total`; the rest is the kernel's
    u64 counted;          // of the rest: what calls and exceptions were told
    struct call_table *calls; // kernel/syscall: what it has called

    u32 tid;           // tasks_lock; marked: exec may give it its task's
    u32 refs;          // atomic
    struct task *task; // kernel threads belong to kernel_task
    char name[16];
    struct list task_node; // task->threads, guarded by tasks_lock
    struct list tid_node;  // tid hash, guarded by tasks_lock

    void *kstack; // lowest address
    struct arch_thread arch;

    // Guarded by the run queue's lock of `cpu` (sched_lock):
    enum thread_state state;
    struct cpu *cpu;      // where it runs or ran last
    bool on_cpu;          // its stack is in use by some CPU
    u32 affinity;         // mask of CPUs it may use; wakers look without lock
    u32 priority;         // its level; likewise
    struct list run_node; // on its level
    bool competing;       // virtual_time counts: a batch thread, not asleep
    u64 virtual_time;     // in the frame of its queue (kernel/sched/fair.h)
    u32 debt;             // of virtual time, when it does not compete
    struct interactivity history; // of 64 TSC cycles
    u32 bequest;                  // atomic: run by threads that ended, not yet
                                  // in its history
    u64 charged;    // what of its accounts is charged (TSC cycles)
    u32 sampled[2]; // by the tick, by statclock
    u64 since;      // when it became ready or fell asleep (TSC)
    u64 waited;     // in run queues, without the wait under way

    const char *wait_on; // name of what it sleeps on; marked
    bool wake_timed_out;
    struct callout wait_timeout;

    u64 switches_voluntary, switches_forced;
    u64 start_ns;
    // Marked: read by anybody. What it has done, for its task's figures.
    u32 migrations;  // put on another CPU; under the run queue's lock
    u32 faults;      // page faults, its own
    u32 oom_address; // its own: where there was no memory for a page

    // Signals: guarded by task->signals.lock.
    sigset_t blocked, pending;
    sigset_t saved_mask; // to restore after sigsuspend, pselect
    bool restore_mask;
    struct siginfo_queue queue;
    u32 altstack_base, altstack_size; // marked: samples read them
    bool must_exit;      // exec or exit of its task ends it (marked access)
    bool signal_pending; // something deliverable may be there: look (marked
                         // access: set by others, read at each kernel exit)
    bool call_failed;    // the system call it is in: counted as an error

    // A system call that a signal interrupted before it did anything: its
    // number and ERESTARTSYS or ERESTARTNOHAND; 0: none.
    u32 restart_call, restart_error;
#ifdef CHECKED
    struct fail_alloc fail_alloc;
#endif
#ifdef LOCKDEP
    struct lockdep_stack lockdep; // the mutexes it holds
#endif
    u64 restart_deadline; // a sleep that is being restarted (0: none)
    u32 clear_tid;        // CHILD_CLEARTID address, 0: none
};

// Each CPU, once, when its ledger and callouts are set up: the running code
// becomes the CPU's idle thread.
void sched_init(void);
NORETURN void sched_start_cpu(void); // the idle loop

// A thread that is not started yet: refs 1 (its own, dropped when it ends).
int thread_create(struct task *task, const char *name, struct thread **out);
// Into the run queue, the first time.
void thread_start(struct thread *t);
// A kernel thread running fn(arg); fn may return.
int kthread_create(const char *name, void (*fn)(void *), void *arg,
                   struct thread **out);
// Ends the calling thread. Task bookkeeping is done already.
NORETURN void thread_exit(void);
void thread_ref(struct thread *t);
void thread_unref(struct thread *t);

// arch calls this first on a new thread's stack, with interrupts off: releases
// what the switch held and finishes off `prev`. The caller enables interrupts.
void sched_switch_finished(struct thread *prev);

void sched_yield(void);
// Switches if another thread should run. Interrupts on, preemption enabled.
void schedule(void);
// VECTOR_RESCHEDULE's handler.
void sched_reschedule_interrupt(void);
// At the end of an interrupt: preempts the interrupted thread if it is due.
void sched_interrupt_exit(void);
// Makes a sleeping thread ready. True if it was asleep. Any context but NMI.
bool thread_wake(struct thread *t);
// Wakes it only from THREAD_WAITING (signals) and, with `stopped`, STOPPED.
bool thread_wake_signal(struct thread *t, bool stopped);
// A new thread takes its affinity and its habits from the running one; a kernel
// thread it is not.
void sched_inherit(struct thread *child);
// The time that a dead thread had, up to what a new one takes over, counts as
// run by `heir`: who goes on starting what is expensive is not interactive.
// tasks_lock held.
void sched_bequeath(const struct thread *dead, struct thread *heir);
void thread_set_nice(struct thread *t, int nice);
int thread_set_affinity(struct thread *t, u32 mask); // -EINVAL: no such CPU
// Sleeps until `deadline`. 0 or -EINTR (interruptible only).
int thread_sleep_until(u64 deadline, u32 mode);

// TSC cycles that a thread has had in the kernel, which it has left for good.
static inline u64 thread_kernel_cycles(const struct thread *t)
{
    return t->total.cycles - t->user;
}
// TSC cycles a thread has had, to the moment. Any context but NMI.
void thread_times(const struct thread *t, u64 *user, u64 *kernel);
// Reasons to look at context switches: tasks with CPU timers, sessions that
// count (kernel/profile/counts.h). Changed atomically; read at each switch.
extern u32 switch_watchers;
// The scheduler has left a dead thread's stack: books its times and drops it.
// Interrupts off, no locks.
void thread_ended(struct thread *t);
// Runnable threads on all CPUs, for the load average and /proc/loadavg.
u32 sched_runnable(void);
