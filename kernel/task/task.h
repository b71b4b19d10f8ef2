// Tasks: Unix processes. A task has at least one thread until it is a zombie;
// its id is the tid of its first thread.
//
// `tasks_lock` (an interrupt-disabling spinlock) guards the task table, the
// tree (parent, children), thread lists, process groups and sessions. Order:
// tasks_lock before a task's signals.lock before a run queue's lock.
#pragma once

#include "kernel/mm/aspace.h"
#include "kernel/task/credentials.h"
#include "kernel/task/ipc_counts.h"
#include "kernel/task/itimer.h"
#include "kernel/task/limits.h"
#include "kernel/task/usage.h"
#include "lib/build_id.h"
#include "lib/set.h"

#define TASK_NAME_MAX 16

// The timers of setitimer: real time, time in user mode, CPU time.
enum { ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF, ITIMERS };

// personality(2): no address space randomization.
#define ADDR_NO_RANDOMIZE 0x40000u

struct files;
struct payer;
struct tty;
struct vnode;

// A session leader ends: sends SIGHUP to the foreground group, and the session
// loses its controlling terminal. tasks_lock not held.
UPCALL void tty_disassociate(struct tty *t, u32 sid);
// The descriptors of a task (kernel/fs/files.c).
UPCALL int files_create(struct files **out);
UPCALL int files_fork(struct files *from, struct files **out);
UPCALL void files_ref(struct files *f);
UPCALL void files_unref(struct files *f);

struct task {
    u32 id;
    u32 refs;
    char name[TASK_NAME_MAX];
    char *path;    // of the executable, as resolved; kfree'd
    char *cmdline; // NUL-separated, cmdline_size bytes; guarded by lock
    u32 cmdline_size;
    struct spinlock lock; // name, threads' names, path, cmdline

    struct list table_node; // in the hash table by id
    struct list all_node;   // in the list of all tasks
    struct task *parent;
    struct list children, sibling;
    struct list threads;
    u32 thread_count;    // in `threads`
    u32 threads_running; // in `threads`, without those that are ending
    u32 pgid, sid;       // this and the next: read without the lock, too
    struct tty *ctty;    // the session's controlling terminal, or NULL

    struct aspace *aspace; // NULL for the kernel task and zombies
    struct files *files;
    struct vnode *cwd, *root;
    // Separate words with marked accesses: threads of this and of other tasks
    // set them at any time.
    u32 umask;
    // kernel/task/credentials.h; changed with `lock` held.
    u32 uid, euid, suid, gid, egid, sgid;
    struct payer *payer; // of its real user; guarded in kernel/task/users.c
    u32 guarded;         // boolean: it has secrets of another user than its own
    u32 group_count, groups[GROUPS_MAX]; // also read with `lock` held
    u32 personality;                     // ADDR_NO_RANDOMIZE; marked
    int nice;
    struct limit_pair limits[LIMITS];

    struct signals signals;

    bool zombie, exiting;
    u32 oom;       // state in kernel/task/oom.c; tasks_lock; marked
    int exit_code; // as wait4 reports it
    // Job control, for wait4: guarded by signals.lock.
    bool stopped, stop_reported, continued;
    int stop_signal;
    int exit_signal;          // sent to the parent (SIGCHLD), 0: none
    int parent_death_signal;  // sent when the parent has ended, 0: none; marked
    u32 execs, parent_execs;  // number of execs; parent's at fork; tasks_lock
    struct waitq child_wait;  // the parent sleeps here in wait4
    struct waitq *vfork_done; // the vfork parent's, until exec or exit
    bool execed;

    struct cpu_timers cpu_timers;      // its lock guards all timers of the task
    struct cpu_timer cpu_limit;        // LIMIT_CPU
    struct itimer itimers[ITIMERS];    // initialized by the first setitimer
    struct posix_timers *posix_timers; // NULL: it never had one

    u64 start_ns;
    u64 arrival; // sequence number of its creation; tasks_lock
    // Usage of threads that have ended; usage of children that were waited for,
    // including their children. tasks_lock.
    struct resource_usage dead, children_usage;

    // kernel/stream: a bit for each stream whose target it is. tasks_lock; read
    // without it by samples and at context switches.
    u32 streams;
    u8 build_id[BUILD_ID_MAX]; // of the program; guarded by `lock`
    u8 build_id_size;          // 0: it has none
    u32 load_bias; // address in memory - address in the file; `lock`

    // kernel/task/task_syscalls.h: system calls of its threads. The list of
    // free tables is guarded by `lock`.
    struct call_table *call_tables, *free_call_tables;

    // kernel/sensor: those it owns, and their bytes; guarded there.
    u32 sensors, sensor_bytes;

    // kernel/ipc: NULL until the first connection; guarded there.
    struct answerbox *answerbox, *kbox;
    struct ipc_counters ipc_counters;
};

// Linker set of observers of task events.
struct task_observer {
    // `child` is in the table and has not run. With tasks_lock held.
    void (*forked)(struct task *child, struct task *parent);
    // thread_named. With tasks_lock held.
    void (*named)(struct thread *t);
    // The thread has left its stack for ever, and is about to leave the table.
    // With tasks_lock held.
    void (*leaves)(struct thread *t);
    void (*execed)(struct task *t); // its new program is about to run
    // exec of a program that has more rights than its user, or that its user
    // may not read: before the new program can be inspected.
    void (*guarded)(struct task *t);
    void (*ended)(struct task *t); // its last thread is ending
    // It has released its memory and files: the last thread leaves its stack.
    void (*released)(struct task *t);
};
#define WAIT_STATUS_EXITED(code) (((code)&0xff) << 8)
#define WAIT_STATUS_SIGNALED(sig) (sig)
#define WAIT_STATUS_STOPPED(sig) ((sig) << 8 | 0x7f)
#define WAIT_STATUS_CONTINUED 0xffff

#define TASK_OBSERVER(o) LINKER_SET_ADD(task_observers, o)

extern struct spinlock tasks_lock;

static inline struct task *current_task(void)
{
    return current->task;
}

// Whether the current task has root's rights.
static inline bool is_root(void)
{
    return !READ_ONCE(current_task()->euid);
}

// Finds a task by id, zombies included; takes a reference. NULL: none.
struct task *task_find(u32 id);
void task_ref(struct task *t);
void task_unref(struct task *t);
// The task's address space, with a reference for the caller; NULL: it has none,
// or is ending. Takes tasks_lock.
struct aspace *task_aspace(struct task *t);
// Iterates in the order of ids: the first task with id >= `id`, with a
// reference for the caller; NULL at the end. No lock is held over the loop
// body.
struct task *task_next(u32 id);
// Iterates in the order of creation over the tasks of a process group, or all
// (pgid 0), without zombies: the next task after `last`, with a reference for
// the caller; drops the reference to `last`. `last` NULL: the first task.
// Result NULL: the end. No lock is held over the loop body, and a step is cheap
// however many tasks there are. Tasks created during the walk are visited last.
struct task *task_walk(struct task *last, u32 pgid);
struct thread *thread_find(u32 tid); // takes a reference
// A user thread's name, of which TASK_NAME_MAX - 1 bytes are taken; the first
// thread's is its task's, too. tasks_lock not held.
void thread_rename(struct thread *t, const char *name);
// Tells the observers: a further thread of a task is in the table, or a thread
// has another name. tasks_lock held.
void thread_named(struct thread *t);
u32 task_count(void);
u64 tasks_created(void); // since start-up
u32 task_newest(void);   // id of the task created last
u32 thread_count(void);

// Sets the address space of the task and its threads. tasks_lock held.
void task_set_aspace(struct task *t, struct aspace *as);
// Sets the nice value of the task and its threads. It has effect from the next
// time a thread is charged. tasks_lock held.
void task_set_nice(struct task *t, int nice);

// Total TSC cycles of all threads, living and dead (not children).
void task_times(struct task *t, u64 *user, u64 *kernel);
void task_times_locked(struct task *t, u64 *user, u64 *kernel); // tasks_lock
// The same of the children that were waited for.
void task_child_times(struct task *t, u64 *user, u64 *kernel);

// fork, vfork, clone, by the flags of clone(2). The child's id or -errno.
struct clone_args {
    u32 flags, stack, parent_tid, tls, child_tid;
};
int task_clone(const struct trapframe *tf, const struct clone_args *args);
// Replaces the program. argv, envp: user addresses of NULL-ended vectors.
int task_exec(struct trapframe *tf, const char *path, u32 argv, u32 envp);
// Ends the whole task with this wait status.
NORETURN void task_exit(int wait_status);
// Ends only the calling thread (the last one ends the task).
NORETURN void task_exit_thread(int wait_status);
// exec: ends the task's other threads and waits until they have ended. -EINTR
// when the task is ending itself.
int task_kill_other_threads(void);
// Wakes the vfork parent: this task no longer uses its memory.
void task_vfork_release(struct task *t);
// Job control: stops the task, and the calling thread until it is continued.
void task_stop_current(int sig);
// SIGCONT: continues all threads. Any context but NMI.
void task_continue(struct task *t);
// wait4 and waitid: waits for any child, the child with this id, or any child
// of this process group. The child's id, 0 (WNOHANG) or -errno.
enum wait_scope { WAIT_ANY, WAIT_TASK, WAIT_GROUP };
struct wait_result {
    u32 id;
    int status;
    int code;                   // CLD_...
    struct resource_usage used; // by the child and children it waited for
};
#define WNOHANG 1u
#define WUNTRACED 2u
#define WEXITED 4u
#define WCONTINUED 8u
#define WNOWAIT 0x01000000u
// Without these two: only children whose exit signal is SIGCHLD.
#define WALL 0x40000000u   // children with any exit signal
#define WCLONE 0x80000000u // only children whose exit signal is not SIGCHLD
int task_wait(enum wait_scope scope, u32 id, u32 options,
              struct wait_result *out);

void task_table_init(void);
// Calls fn for every task with tasks_lock held.
void task_for_each_locked(void (*fn)(struct task *t, void *arg), void *arg);

// Starts the first user task. Called by a kernel thread. begin(arg), called on
// its thread, executes its program. 0 or -errno.
int task_start_init(void (*begin)(void *), void *arg);
