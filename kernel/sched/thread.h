// Threads and the scheduler: one run queue per CPU.
#pragma once

#include "kernel/base/signal.h"
#include "kernel/base/thread.h"
#include "kernel/debug/fail_alloc.h"
#include "kernel/sched/interactivity.h"
#include "kernel/sync/lockdep.h"
#include "kernel/sync/waitq.h"
#include "kernel/time/callout.h"
#include "kernel/time/ledger.h"
#include "lib/set.h"

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
    struct thread_base;       // what the lower layers know of it
    struct call_table *calls; // kernel/task/calls.h: what it has called

    u32 refs;              // atomic
    struct task *task;     // kernel threads belong to kernel_task
    struct list task_node; // task->threads, guarded by tasks_lock
    struct list tid_node;  // tid hash, guarded by tasks_lock

    // Guarded by the run queue's lock of `cpu` (sched_lock):
    enum thread_state state;
    struct cpu *cpu;      // where it runs or ran last
    bool on_cpu;          // its stack is in use by some CPU
    int nice;             // of its task; marked: set at any time
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

    bool wake_timed_out;
    struct callout wait_timeout;

    u64 switches_voluntary, switches_forced;
    u64 start_ns;
    // Marked: read by anybody. What it has done, for its task's figures.
    u32 migrations;  // put on another CPU; under the run queue's lock
    u32 oom_address; // its own: where there was no memory for a page

    // Signals: guarded by task->signals.lock.
    sigset_t blocked, pending;
    sigset_t saved_mask; // to restore after sigsuspend, pselect
    bool restore_mask;
    struct siginfo_queue queue;
    bool call_failed; // the system call it is in: counted as an error

    // A system call that a signal interrupted before it did anything: its
    // number and ERESTARTSYS or ERESTARTNOHAND; 0: none.
    u32 restart_call, restart_error;
#ifdef CHECKED
    struct fail_alloc fail_alloc;
#endif
#ifdef LOCKDEP
    struct lockdep_stack lockdep; // what `mutexes` points to
#endif
    u64 restart_deadline; // a sleep that is being restarted (0: none)
    u32 clear_tid;        // CHILD_CLEARTID address, 0: none
};

// Each CPU, once, when its ledger and callouts are set up: the running code
// becomes the CPU's idle thread.
void sched_init(void);
NORETURN void sched_start_cpu(void); // the idle loop

// A thread that is not started yet: refs 1 (its own, dropped when it ends).
UPCALL int thread_create(struct task *task, const char *name,
                         struct thread **out);
// Into the run queue, the first time.
void thread_start(struct thread *t);
// A kernel thread running fn(arg); fn may return.
UPCALL int kthread_create(const char *name, void (*fn)(void *), void *arg,
                          struct thread **out);
// Ends the calling thread. Task bookkeeping is done already.
NORETURN void thread_exit(void);
UPCALL void thread_ref(struct thread *t);
UPCALL void thread_unref(struct thread *t);

void sched_yield(void);
// Switches if another thread should run. Interrupts on, preemption enabled.
void schedule(void);
// Wakes it only from THREAD_WAITING (signals) and, with `stopped`, STOPPED.
bool thread_wake_signal(struct thread *t, bool stopped);
// A new thread takes its affinity and its habits from the running one; a kernel
// thread it is not.
void sched_inherit(struct thread *child);
// The time that a dead thread had, up to what a new one takes over, counts as
// run by `heir`: who goes on starting what is expensive is not interactive. The
// caller sees to it that it stays (tasks_lock).
void sched_bequeath(const struct thread *dead, struct thread *heir);
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
// What is called after each context switch, on the new thread, while
// switch_watchers is not 0 (linker set). Interrupts off, no locks.
struct switch_observer {
    void (*switched)(void);
};
#define SWITCH_OBSERVER(o) LINKER_SET_ADD(switch_observers, o)
extern u32 switch_watchers; // changed atomically

UPCALL extern struct task kernel_task; // of the kernel's threads
// The scheduler has left a dead thread's stack: books its times and drops it.
// Interrupts off, no locks.
UPCALL void thread_ended(struct thread *t);
// Runnable threads on all CPUs, for the load average and /proc/loadavg.
u32 sched_runnable(void);
