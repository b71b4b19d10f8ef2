// Tasks: what Unix calls a process. A task has at least one thread until it is
// a zombie; its id is the tid of its first thread.
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
#include "kernel/task/statistics.h"
#include "lib/build_id.h"
#include "lib/set.h"

#define TASK_NAME_MAX 16

// setitimer's: of real time, of time in user mode, of CPU time.
enum { ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF, ITIMERS };

// personality(2): programs lie where they always do.
#define ADDR_NO_RANDOMIZE 0x40000u

struct files;
struct tty;
struct vnode;

// The leader of a session ends: SIGHUP to the foreground group, and nobody has
// that terminal any more. tasks_lock not held.
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
    struct spinlock lock; // name, path, cmdline

    struct list table_node; // id hash / list of all tasks
    struct list all_node;
    struct task *parent;
    struct list children, sibling;
    struct list threads;
    u32 thread_count;    // in `threads`
    u32 threads_running; // of those, that have not begun to end
    u32 pgid, sid;       // and the next: read without the lock, too
    struct tty *ctty;    // the session's controlling terminal, or NULL

    struct aspace *aspace; // NULL for the kernel task and zombies
    struct files *files;
    struct vnode *cwd, *root;
    // Each a word of its own, marked: threads of the task, and others, set them
    // at any time.
    u32 umask;
    // kernel/task/credentials.h; changed with `lock`.
    u32 uid, euid, suid, gid, egid, sgid;
    u32 guarded; // it has secrets of another user than its own; a bool
    u32 group_count, groups[GROUPS_MAX]; // read with `lock`, too
    u32 personality;                     // ADDR_NO_RANDOMIZE; marked
    int nice;
    struct limit_pair limits[LIMITS];

    struct signals signals;

    bool zombie, exiting;
    u32 oom; // kernel/task/oom.c: ended for its memory? tasks_lock; marked
    int exit_code; // as wait4 reports it
    // Job control, for wait4: guarded by signals.lock.
    bool stopped, stop_reported, continued;
    int stop_signal;
    int exit_signal;          // sent to the parent (SIGCHLD), 0: none
    u32 execs, parent_execs;  // its, and its parent's when it came; tasks_lock
    struct waitq child_wait;  // the parent sleeps here in wait4
    struct waitq *vfork_done; // the vfork parent's, until exec or exit
    bool execed;

    struct cpu_timers cpu_timers;      // its lock guards all timers of the task
    struct cpu_timer cpu_limit;        // LIMIT_CPU
    struct itimer itimers[ITIMERS];    // made by the first setitimer of each
    struct posix_timers *posix_timers; // NULL: it never had one

    u64 start_ns;
    u64 arrival; // its place among all tasks there have been; tasks_lock
    // What threads that have ended did, and waited-for children with theirs.
    // tasks_lock.
    struct task_figures dead, children_did;

    // kernel/stream: a bit for each stream whose target it is. tasks_lock; read
    // by samples and at its context switches.
    u32 streams;
    u8 build_id[BUILD_ID_MAX]; // of the program; guarded by `lock`
    u8 build_id_size;          // 0: it has none
    u32 load_bias; // memory's addresses less its file's; written with `lock`

    // kernel/task/task_calls.h: what its threads have called; the
    // free ones are guarded by `lock`.
    struct call_table *call_tables, *free_call_tables;

    // kernel/ipc: NULL until somebody connects; guarded there.
    struct answerbox *answerbox, *kbox;
    struct ipc_counters ipc_counters;
};

// What happens to tasks, for parts that the core does not know (linker set).
struct task_observer {
    // `child` is in the table and has not run. With tasks_lock held.
    void (*forked)(struct task *child, struct task *parent);
    void (*execed)(struct task *t); // its new program is about to run
    // Before that can be looked into: it has more rights than its user, or is
    // not to be read by it.
    void (*guarded)(struct task *t);
    void (*ended)(struct task *t); // its last thread has stopped for good
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

// Whether the current task may do everything.
static inline bool is_root(void)
{
    return !READ_ONCE(current_task()->euid);
}

// Looks up by id; takes a reference. NULL if there is none (zombies are found).
struct task *task_find(u32 id);
void task_ref(struct task *t);
void task_unref(struct task *t);
// Its address space, referenced; NULL: it has none (any more). Takes
// tasks_lock.
struct aspace *task_aspace(struct task *t);
// The first task with id >= `id` (referenced), NULL at the end: iterate without
// holding a lock over the body.
struct task *task_next(u32 id);
// The task that came after `last` (referenced, and given back here), of a
// process group, or of all (0); NULL as `last`: the first, as result: none is
// left. No lock is held over the body, and a step costs little however many
// there are; those that come meanwhile come last. Zombies are left out.
struct task *task_walk(struct task *last, u32 pgid);
struct thread *thread_find(u32 tid); // referenced
u32 task_count(void);
u64 tasks_created(void); // since the start
u32 task_newest(void);   // the id given last to a task
u32 thread_count(void);

// Its threads' address space, from now on. tasks_lock.
void task_set_aspace(struct task *t, struct aspace *as);
// Its nice value counts from the next time a thread is charged. tasks_lock.
void task_set_nice(struct task *t, int nice);

// Total TSC cycles of all threads, living and dead (not children).
void task_times(struct task *t, u64 *user, u64 *kernel);
void task_times_locked(struct task *t, u64 *user, u64 *kernel); // tasks_lock
// Those of the children that were waited for.
void task_child_times(struct task *t, u64 *user, u64 *kernel);

// fork, vfork, clone, as the system calls' flags say. Child's id or -errno.
struct clone_args {
    u32 flags, stack, parent_tid, tls, child_tid;
};
int task_clone(const struct trapframe *tf, const struct clone_args *args);
// Replaces the program. argv, envp: user addresses of NULL-ended vectors.
int task_exec(struct trapframe *tf, const char *path, u32 argv, u32 envp);
// Ends the whole task with this wait status. Never returns.
NORETURN void task_exit(int wait_status);
// Ends only the calling thread (the last one ends the task).
NORETURN void task_exit_thread(int wait_status);
// Ends the task's other threads (exec) and waits for that. -EINTR when this
// thread is to die itself.
int task_kill_other_threads(void);
// Lets a vfork parent go on: this task needs its memory no more.
void task_vfork_release(struct task *t);
// Stops the calling thread, as job control asks, until it is continued.
void task_stop_current(int sig);
// SIGCONT: all threads go on. Any context.
void task_continue(struct task *t);
// wait4 and waitid: for any child, that with this id, or any of this process
// group. The child's id, 0 (WNOHANG) or -errno.
enum wait_whom { WAIT_ANY, WAIT_TASK, WAIT_GROUP };
struct wait_result {
    u32 id;
    int status;
    int code;                 // CLD_...
    struct task_figures used; // by it, and by children it waited for
};
#define WNOHANG 1u
#define WUNTRACED 2u
#define WEXITED 4u
#define WCONTINUED 8u
#define WNOWAIT 0x01000000u
#define WALL 0x40000000u   // children with whatever exit signal
#define WCLONE 0x80000000u // those with another than SIGCHLD; else only those
int task_wait(enum wait_whom whom, u32 id, u32 options,
              struct wait_result *out);

void task_table_init(void);
// Calls fn for every task with tasks_lock held.
void task_for_each_locked(void (*fn)(struct task *t, void *arg), void *arg);

// The first user task, from a kernel thread; begin(arg), on its thread, gives
// it its program. 0 or -errno.
int task_start_init(void (*begin)(void *), void *arg);
