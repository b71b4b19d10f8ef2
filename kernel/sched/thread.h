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

// The part of a user's record that is the scheduler's.
struct cpu_share {
    u32 competing; // batch threads that compete; atomic
};

struct call_table;
struct task;

// Measures an interval of the thread while a sensor is open
// (kernel/sensor/kernel_times.c).
struct stopwatch {
    u64 began;   // TSC
    u32 opening; // of the sensor; 0: not started
    u32 what;
};

enum thread_state {
    THREAD_RUNNING,  // on a CPU
    THREAD_READY,    // in a run queue
    THREAD_SLEEPING, // waits; a signal does not wake it
    THREAD_WAITING,  // waits; a signal wakes it (interruptible)
    THREAD_STOPPED,  // by SIGSTOP, SIGTSTP, SIGTTIN or SIGTTOU
    THREAD_DEAD,
};

// Priority levels, 0 is the most urgent. See kernel/sched/sched.c for policy.
#define PRIORITY_LEVELS 32
#define PRIORITY_KERNEL 1u // of kernel threads
#define PRIORITY_IDLE (PRIORITY_LEVELS - 1u)

struct thread {
    struct thread_base;       // the part that the lower layers know
    struct call_table *calls; // kernel/task/syscall_table.h: calls it made

    u32 refs;              // atomic
    struct task *task;     // kernel threads belong to kernel_task
    struct list task_node; // task->threads, guarded by tasks_lock
    struct list tid_node;  // tid hash, guarded by tasks_lock

    // Guarded by the lock of the run queue of `cpu` (run_queue_lock_of):
    enum thread_state state;
    struct cpu *cpu;         // where it runs or ran last
    bool on_cpu;             // its stack is in use by some CPU
    int nice;                // of its task; marked access: set at any time
    struct cpu_set affinity; // CPUs it may use; wakers read it unlocked
    u32 priority;            // its level; wakers read it unlocked
    struct list run_node;    // on its level's list
    bool competing;   // virtual_time is valid: a batch thread, not asleep
    u64 virtual_time; // weighted cycles, local to its queue (fair.h)
    u32 debt;         // virtual time ahead, while it does not compete
    struct cpu_share *share;      // of its user, with fair=user; else NULL
    struct interactivity history; // in history units of 64 TSC cycles
    u32 inherited_charge; // atomic: inherited run-time charge of threads that
                          // ended, in history units, not yet in its history
    u64 charged;          // how much of `total` is charged (TSC cycles)
    u32 sampled[2];       // samples by the tick, by statclock
    u64 since;            // when it became ready or fell asleep (TSC)
    u64 waited;           // TSC cycles in run queues, without the current wait

    bool wake_timed_out;
#ifdef CHECKED
    bool unwoken; // kernel/debug/wakes.h; its own
#endif
    struct callout wait_timeout;

    struct stopwatch call_watch, fault_watch; // its own
    u64 switches_voluntary, switches_forced;
    u64 start_ns;
    // Read without a lock (marked access), for its task's statistics.
    u32 migrations;  // moves to another CPU; run queue's lock
    u32 oom_address; // where no memory was left for a page; set by itself

    // Signals: guarded by task->signals.lock.
    sigset_t blocked, pending;
    sigset_t saved_mask; // to restore after sigsuspend, pselect
    bool restore_mask;
    struct siginfo_queue queue;
    bool call_failed; // its current system call counts as an error

    // A system call that a signal interrupted before it did anything: its
    // number and ERESTARTSYS or ERESTARTNOHAND; 0: none.
    u32 restart_call, restart_error;
#ifdef CHECKED
    struct fail_alloc fail_alloc;
#endif
#ifdef LOCKDEP
    struct lockdep_stack lockdep; // `mutexes` points to it
#endif
    u64 restart_deadline; // of a sleep that is being restarted (0: none)
    u32 clear_tid;        // CHILD_CLEARTID address, 0: none
};

// Once on each CPU, when its ledger and callouts are set up: the running code
// becomes the CPU's idle thread.
void sched_init(void);
NORETURN void sched_start_cpu(void); // the idle loop

// Creates a thread that is not started yet, with refs 1: its own reference,
// dropped when it ends.
UPCALL int thread_create(struct task *task, const char *name,
                         struct thread **out);
// Puts a new thread into a run queue.
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
struct thread *sched_idle_thread(u32 cpu);
static inline bool thread_is_idle(const struct thread *t)
{
    return t->priority == PRIORITY_IDLE; // no other thread ever has it
}
// For signals: wakes the thread only from THREAD_WAITING and, with `stopped`,
// from THREAD_STOPPED.
bool thread_wake_signal(struct thread *t, bool stopped);
// Fork: a new thread inherits affinity, blocked signals and interactivity
// history from the running thread, except from a kernel thread.
void sched_inherit(struct thread *child);
// Adds a dead thread's run time, up to what a new thread inherits, to the
// run-time charge of `inheritor`: a thread that keeps starting expensive
// programs is not interactive. The caller keeps `inheritor` from going away
// (tasks_lock).
void sched_inherit_charge(const struct thread *dead, struct thread *inheritor);
// The share of a thread of this user: NULL without fair=user.
struct cpu_share *sched_share(struct cpu_share *of_user);
// The thread gets another user. When this returns, the scheduler no longer uses
// the old user's share for it.
void sched_set_share(struct thread *t, struct cpu_share *share);
// -EINVAL: none of the CPUs exists.
int thread_set_affinity(struct thread *t, const struct cpu_set *cpus);
// Sleeps until `deadline`. 0 or -EINTR (interruptible only).
int thread_sleep_until(u64 deadline, u32 mode);

// TSC cycles that a thread ran in the kernel, for a thread that has left the
// CPU for the last time: the cycles of an open account are not included.
static inline u64 thread_kernel_cycles(const struct thread *t)
{
    return t->total.cycles - t->user;
}
// TSC cycles that a thread ran up to now. Any context but NMI.
void thread_times(const struct thread *t, u64 *user, u64 *kernel);
UPCALL extern struct task kernel_task; // the task of the kernel's threads
// Called after the scheduler has left a dead thread's stack: records its times
// and drops its reference. Interrupts off, no locks.
UPCALL void thread_ended(struct thread *t);
// Number of runnable threads on all CPUs, for the load average and
// /proc/loadavg.
u32 sched_runnable(void);
