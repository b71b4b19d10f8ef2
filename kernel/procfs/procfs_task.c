// /proc/PID and /proc/PID/task/TID: the state of tasks and threads.
//
// A snapshot is taken first and formatted afterwards. Values that the sysinfo
// tree has too are from its generators (kernel/monitor/sysinfo_values.h); those
// that only Linux has are read here, under the locks that guard them.

#include "arch/clock.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/tty.h"
#include "kernel/monitor/sysinfo_values.h"
#include "kernel/procfs/procfs.h"
#include "kernel/task/task.h"
#include "lib/string.h"

#define PAGE_KIB (PAGE_SIZE / 1024)
#define NICE_BASE 20 // priority that ps shows for nice 0

struct snapshot {
    struct sysinfo_task of;       // the task
    struct sysinfo_thread thread; // one of its threads; all 0: it has none
    struct cpu_set affinity;      // of that thread
    char name[TASK_NAME_MAX], state;
    u32 id, tty;
    s32 foreground; // group of the terminal, -1: none
    u32 euid, suid, gid, egid, sgid, umask;
    u32 group_count, groups[GROUPS_MAX];
    int exit_signal, exit_code;
    u64 user, kernel, start; // clock ticks
    u32 virtual_pages, resident_pages;
    u32 virtual_peak, resident_peak; // in pages
    u64 child_faults;
    sigset_t pending, shared_pending, blocked, ignored, caught;
};
_Static_assert(sizeof(((struct sysinfo_task *)0)->name) == TASK_NAME_MAX &&
                   sizeof(((struct sysinfo_thread *)0)->name) == TASK_NAME_MAX,
               "choose_parts copies whole names");

// --- the snapshot: with tasks_lock held -------------------------------------

static void snap_terminal(struct snapshot *s, const struct task *task)
{
    spin_assert_held(&tasks_lock);
    struct tty *tty = task->ctty;

    s->foreground = -1;
    if (!tty)
        return;
    s->tty = tty_device_number(tty);
    if (tty_foreground(tty) != 0)
        s->foreground = tty_foreground(tty);
}

static void snap_signals(struct snapshot *s, struct task *task,
                         const struct thread *thread)
{
    spin_assert_held(&tasks_lock);
    u32 flags = spin_lock_irq(&task->signals.lock);

    s->shared_pending = task->signals.pending;
    if (thread) {
        s->pending = thread->pending;
        s->blocked = thread->blocked;
    }
    for (u32 i = 0; i < NSIG; i++) {
        u32 handler = task->signals.action[i].handler;
        if (handler == SIG_IGN)
            s->ignored |= 1ull << i;
        else if (handler != SIG_DFL)
            s->caught |= 1ull << i;
    }
    spin_unlock_irq(&task->signals.lock, flags);
}

static void snap_task(struct snapshot *s, struct task *task)
{
    spin_assert_held(&tasks_lock);
    s->euid = READ_ONCE(task->euid);
    s->gid = READ_ONCE(task->gid);
    s->egid = READ_ONCE(task->egid);
    s->suid = READ_ONCE(task->suid);
    s->sgid = READ_ONCE(task->sgid);
    s->umask = READ_ONCE(task->umask);
    s->exit_signal = task->exit_signal;
    s->exit_code = task->exit_code;
    s->child_faults = task->children_usage.faults;
    if (!task->exiting && task->aspace) {
        s->virtual_peak = aspace_peak_virtual(task->aspace);
        s->resident_peak = aspace_peak_resident(task->aspace);
    }
}

// The thread `tid` of a task; 0: any, the oldest. NULL: there is none.
static struct thread *pick_thread(struct task *task, u32 tid)
{
    spin_assert_held(&tasks_lock);
    struct thread *thread;

    list_for_each(thread, &task->threads, task_node) {
        if (tid == 0 || thread->tid == tid)
            return thread;
    }
    return NULL;
}

// --- the snapshot -----------------------------------------------------------

static char state_letter(u32 state)
{
    static const char letters[] = {
        [SYSINFO_RUNNING] = 'R',  [SYSINFO_READY] = 'R',
        [SYSINFO_SLEEPING] = 'D', [SYSINFO_WAITING] = 'S',
        [SYSINFO_STOPPED] = 'T',  [SYSINFO_DEAD] = 'X',
        [SYSINFO_ZOMBIE] = 'Z',
    };
    assert(state < ARRAY_SIZE(letters) && letters[state]);

    return letters[state];
}

// The values that only Linux has, under tasks_lock. *tid gets the id of the
// thread whose signals were read, 0: the task has none.
static void snap_locked(struct snapshot *s, struct task *task, u32 *tid)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    struct thread *thread = pick_thread(task, *tid);
    snap_task(s, task);
    snap_terminal(s, task);
    snap_signals(s, task, thread);
    if (thread)
        cpu_set_copy(&s->affinity, &thread->affinity);
    *tid = thread != NULL ? thread->tid : 0;
    spin_unlock_irq(&tasks_lock, flags);
}

static void snap_groups(struct snapshot *s, struct task *task)
{
    u32 flags = spin_lock_irq(&task->lock);
    s->group_count = task->group_count;
    memcpy(s->groups, task->groups, sizeof(s->groups));
    spin_unlock_irq(&task->lock, flags);
}

// The values that come from the task or from the thread, by the file's kind.
static void choose_parts(struct snapshot *s, bool of_thread)
{
    s->id = of_thread ? s->thread.id : s->of.id;
    s->state = state_letter(of_thread ? s->thread.state : s->of.state);
    s->user = proc_ticks(of_thread ? s->thread.user : s->of.user);
    s->kernel = proc_ticks(of_thread ? s->thread.kernel : s->of.kernel);
    s->start = (of_thread ? s->thread.started : s->of.started) / PROC_TICK_NS;
    memcpy(s->name, of_thread ? s->thread.name : s->of.name, sizeof(s->name));
    s->virtual_pages = s->of.virtual / PAGE_SIZE;
    s->resident_pages = s->of.resident / PAGE_SIZE;
}

// Takes a snapshot of a task, or (tid not 0) of one of its threads.
static int take_snapshot(const struct proc_node *n, struct snapshot *s)
{
    assert_may_sleep();
    struct task *task = proc_find_task(n);
    u32 tid = n->tid;
    int err;

    if (!task)
        return -ESRCH;
    memset(s, 0, sizeof(*s));
    snap_locked(s, task, &tid);
    snap_groups(s, task);
    err = sysinfo_fill_task(task->id, &s->of);
    task_unref(task);
    // A task's only thread may end at any time; the task still exists then.
    if (!err && tid != 0 && sysinfo_fill_thread(tid, &s->thread))
        tid = 0;
    if (!err && n->tid != 0 && tid == 0)
        err = -ENOENT;
    if (!err)
        choose_parts(s, n->tid != 0);
    return err == -ENOENT ? -ESRCH : err;
}

// --- formatting (proc(5)) ---------------------------------------------------

static int make_stat(struct chain *t, void *arg)
{
    struct snapshot s;
    int err = take_snapshot(arg, &s);
    if (err)
        return err;
    // pid (comm) state ppid pgrp session tty_nr tpgid flags
    chain_printf(t, "%u (%s) %c %u %u %u %u %d 0", s.id, s.name, s.state,
                 s.of.parent, s.of.group, s.of.session, s.tty, s.foreground);
    // minflt cminflt majflt cmajflt utime stime cutime cstime
    chain_printf(t, " %llu %llu 0 0 %llu %llu %llu %llu", s.of.faults,
                 s.child_faults, s.user, s.kernel, proc_ticks(s.of.child_user),
                 proc_ticks(s.of.child_kernel));
    // priority nice num_threads itrealvalue starttime vsize rss rsslim
    chain_printf(t, " %d %d %u 0 %llu %llu %u 4294967295",
                 NICE_BASE + s.of.nice, s.of.nice, s.of.threads, s.start,
                 s.of.virtual, s.resident_pages);
    // startcode endcode startstack kstkesp kstkeip signal blocked sigignore
    // sigcatch wchan nswap cnswap
    chain_printf(t, " 0 0 0 0 0 %u %u %u %u 0 0 0", (u32)s.pending,
                 (u32)s.blocked, (u32)s.ignored, (u32)s.caught);
    // exit_signal processor rt_priority policy delayacct_blkio_ticks
    // guest_time cguest_time start_data end_data start_brk
    chain_printf(t, " %d %u 0 0 0 0 0 0 0 0", s.exit_signal, s.thread.cpu);
    // arg_start arg_end env_start env_end exit_code
    chain_printf(t, " 0 0 0 0 %d\n", s.exit_code);
    return 0;
}

static int make_statm(struct chain *t, void *arg)
{
    struct snapshot s;
    int err = take_snapshot(arg, &s);
    if (err)
        return err;
    // size resident shared text lib data dt, in pages
    chain_printf(t, "%u %u 0 0 0 %u 0\n", s.virtual_pages, s.resident_pages,
                 s.virtual_pages);
    return 0;
}

static const char *state_name(char state)
{
    switch (state) {
    case 'R':
        return "running";
    case 'D':
        return "disk sleep";
    case 'T':
        return "stopped";
    case 'Z':
        return "zombie";
    case 'X':
        return "dead";
    default:
        return "sleeping";
    }
}

// As Linux: words of 32 CPUs, the last ones first; and as a list, "0-1,3".
static void put_cpus_allowed(struct chain *t, const struct cpu_set *s)
{
    char list[3 * CPU_MAX]; // the longest: "0-1,3-4,..."

    chain_printf(t, "Cpus_allowed:\t%x", s->words[cpu_set_words - 1]);
    for (u32 i = cpu_set_words - 1; i-- > 0;)
        chain_printf(t, ",%08x", s->words[i]);
    chain_printf(t, "\nCpus_allowed_list:\t%s\n",
                 cpu_set_list(s, list, sizeof(list)));
}

// Escapes the name, so that it stays on one line.
static void put_status_name(struct chain *t, const char *name)
{
    chain_printf(t, "Name:\t");
    for (; *name != '\0'; name++) {
        if (*name == '\n')
            chain_printf(t, "\\n");
        else if (*name == '\\')
            chain_printf(t, "\\\\");
        else
            chain_append(t, name, 1);
    }
}

static void put_status_ids(struct chain *t, const struct snapshot *s,
                           u32 descriptors)
{
    put_status_name(t, s->name);
    chain_printf(t, "\nUmask:\t%04o\nState:\t%c (%s)\n", s->umask, s->state,
                 state_name(s->state));
    chain_printf(t, "Tgid:\t%u\nNgid:\t0\nPid:\t%u\nPPid:\t%u\n", s->of.id,
                 s->id, s->of.parent);
    chain_printf(t, "TracerPid:\t0\nUid:\t%u\t%u\t%u\t%u\n", s->of.uid, s->euid,
                 s->suid, s->euid);
    chain_printf(t, "Gid:\t%u\t%u\t%u\t%u\nFDSize:\t%u\nGroups:\t", s->gid,
                 s->egid, s->sgid, s->egid, descriptors);
    for (u32 i = 0; i < s->group_count; i++)
        chain_printf(t, "%u ", s->groups[i]);
    chain_printf(t, s->group_count ? "\n" : " \n");
}

static void put_status_memory(struct chain *t, const struct snapshot *s)
{
    u32 size = s->virtual_pages * PAGE_KIB;
    u32 resident = s->resident_pages * PAGE_KIB;
    u32 most = MAX(s->virtual_peak * PAGE_KIB, size);
    u32 most_resident = MAX(s->resident_peak * PAGE_KIB, resident);
    if (size == 0) // a zombie has no memory
        return;
    chain_printf(t, "VmPeak:\t%8u kB\nVmSize:\t%8u kB\nVmLck:\t%8u kB\n", most,
                 size, 0);
    chain_printf(t, "VmHWM:\t%8u kB\nVmRSS:\t%8u kB\nVmData:\t%8u kB\n",
                 most_resident, resident, size);
    chain_printf(t, "VmSwap:\t%8u kB\n", 0);
}

static void put_status_signals(struct chain *t, const struct snapshot *s)
{
    chain_printf(t, "Threads:\t%u\nSigQ:\t0/0\nSigPnd:\t%016llx\n",
                 s->of.threads, s->pending);
    chain_printf(t, "ShdPnd:\t%016llx\nSigBlk:\t%016llx\n", s->shared_pending,
                 s->blocked);
    chain_printf(t, "SigIgn:\t%016llx\nSigCgt:\t%016llx\n", s->ignored,
                 s->caught);
}

static int make_status(struct chain *t, void *arg)
{
    const struct proc_node *n = arg;
    struct task *task = proc_find_task(n);
    u32 descriptors = 0;
    struct snapshot s;
    int err;
    if (task) {
        descriptors = proc_fd_table_size(task);
        task_unref(task);
    }
    err = take_snapshot(n, &s);
    if (err)
        return err;
    put_status_ids(t, &s, descriptors);
    put_status_memory(t, &s);
    put_status_signals(t, &s);
    put_cpus_allowed(t, &s.affinity);
    chain_printf(t,
                 "voluntary_ctxt_switches:\t%llu\n"
                 "nonvoluntary_ctxt_switches:\t%llu\n",
                 s.thread.voluntary, s.thread.forced);
    return 0;
}

static int make_comm(struct chain *t, void *arg)
{
    struct snapshot s;
    int err = take_snapshot(arg, &s);
    if (!err)
        chain_printf(t, "%s\n", s.name);
    return err;
}

// Of a thread of the caller's own task; a longer name is cut.
static int write_comm(const struct proc_node *n, struct io *io)
{
    char name[TASK_NAME_MAX] = "";
    int err = io_from(io, name, MIN(io->left, sizeof(name) - 1));
    struct thread *thread = err ? NULL : thread_find(n->tid ? n->tid : n->pid);
    if (!thread)
        return err ? err : -ESRCH;
    if (thread->task == current_task())
        thread_rename(thread, name);
    else
        err = -EINVAL;
    thread_unref(thread);
    return err;
}

static int make_cmdline(struct chain *t, void *arg)
{
    struct task *task = proc_find_task(arg);
    u32 flags;
    if (!task)
        return -ESRCH;
    flags = spin_lock_irq(&task->lock);
    // Empty for a zombie: a task is shown as one once its last thread is gone.
    if (task->cmdline && READ_ONCE(task->thread_count) > 0)
        chain_append(t, task->cmdline, task->cmdline_size);
    spin_unlock_irq(&task->lock, flags);
    task_unref(task);
    return 0;
}

// --- the directories --------------------------------------------------------

static bool next_thread(const struct proc_node *dir, u32 from, u32 *number)
{
    struct task *task = proc_find_task(dir);
    struct thread *thread;
    bool found = false;
    u32 flags;
    if (!task)
        return false;
    flags = spin_lock_irq(&tasks_lock);
    list_for_each(thread, &task->threads, task_node) {
        if (thread->tid >= from && (!found || thread->tid < *number)) {
            *number = thread->tid;
            found = true;
        }
    }
    spin_unlock_irq(&tasks_lock, flags);
    task_unref(task);
    return found;
}

static void set_tid(struct proc_node *child, u32 number)
{
    child->tid = number;
}

#define COMM                                                       \
    {                                                              \
        .name = "comm", .mode = S_IFREG | 0644, .make = make_comm, \
        .write = write_comm                                        \
    }

static const struct proc_entry thread_entries[] = {
    PROC_FILE("stat", .make = make_stat),
    PROC_FILE("status", .make = make_status),
    COMM,
    PROC_FILE("cmdline", .make = make_cmdline),
};
static const struct proc_dir thread_dir = {
    .entries = thread_entries,
    .count = ARRAY_SIZE(thread_entries),
};
static const struct proc_entry thread_entry =
    PROC_DIRECTORY("TID", 0555, &thread_dir);

static const struct proc_dir threads_dir = {
    .numbered = &thread_entry,
    .next = next_thread,
    .set = set_tid,
};

static const struct proc_entry task_entries[] = {
    PROC_FILE("stat", .make = make_stat),
    PROC_FILE("statm", .make = make_statm),
    PROC_FILE("status", .make = make_status),
    PROC_FILE("cmdline", .make = make_cmdline),
    COMM,
    PROC_FILE("maps", .make = proc_make_maps),
    PROC_FILE("mounts", .make = proc_make_mounts),
    PROC_LINK("exe", .link = proc_link_exe, .follow = proc_follow_exe),
    PROC_LINK("cwd", .link = proc_link_cwd, .follow = proc_follow_cwd),
    PROC_LINK("root", .link = proc_link_root, .follow = proc_follow_root),
    PROC_DIRECTORY("fd", 0500, &proc_fd_dir),
    PROC_DIRECTORY("task", 0555, &threads_dir),
};
static const struct proc_dir task_dir = {
    .entries = task_entries,
    .count = ARRAY_SIZE(task_entries),
};
const struct proc_entry proc_task_entry =
    PROC_DIRECTORY("PID", 0555, &task_dir);
