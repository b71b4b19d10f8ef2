// /proc/PID and /proc/PID/task/TID: what tasks and threads are doing.
//
// A snapshot is taken first, under the locks that guard its parts; it is put
// into words afterwards. While tasks_lock is held and the task is not `exiting`
// its address space is there: exiting begins by saying so under that lock.

#include "kernel/errno.h"
#include "kernel/fs/procfs.h"
#include "kernel/fs/tty.h"
#include "kernel/mm/aspace.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/task.h"
#include "lib/string.h"

#include <arch/clock.h>

#define PAGE_KIB (PAGE_SIZE / 1024)
#define NICE_BASE 20 // priority that ps shows for nice 0

struct snapshot {
    char name[TASK_NAME_MAX], state;
    u32 id, task, parent, pgid, sid, tty;
    s32 foreground; // group of the terminal, -1: none
    u32 uid, euid, gid, egid, umask;
    u32 threads, cpu, affinity;
    int nice, exit_signal, exit_code;
    u64 user, kernel, child_user, child_kernel, start; // clock ticks
    u32 virtual_pages, resident_pages;
    u64 faults, major_faults, voluntary, forced;
    sigset_t pending, shared_pending, blocked, ignored, caught;
};

static u64 ticks(u64 cycles)
{
    return clock_tsc_to_ns(cycles) / PROC_TICK_NS;
}

// --- taking it: tasks_lock is held
// -----------------------------------------------

static void snap_memory(struct snapshot *s, const struct task *task)
{
    const struct aspace *as = task->exiting ? NULL : task->aspace;

    if (as == NULL)
        return;
    s->virtual_pages = as->virtual_pages;
    s->resident_pages = as->resident_pages;
    s->faults = as->faults;
    s->major_faults = as->major_faults;
}

static void snap_terminal(struct snapshot *s, const struct task *task)
{
    struct tty *tty = task->ctty;

    s->foreground = -1;
    if (tty == NULL)
        return;
    s->tty = tty_device_number(tty);
    if (tty_foreground(tty) != 0)
        s->foreground = tty_foreground(tty);
}

static void snap_signals(struct snapshot *s, struct task *task,
                         const struct thread *thread)
{
    u32 flags = spin_lock_irq(&task->signals.lock);

    s->shared_pending = task->signals.pending;
    if (thread != NULL) {
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

static void snap_thread(struct snapshot *s, const struct thread *thread)
{
    s->cpu = thread->cpu != NULL ? thread->cpu->id : 0;
    s->affinity = thread->affinity;
    s->voluntary = thread->switches_voluntary;
    s->forced = thread->switches_forced;
}

static void snap_task(struct snapshot *s, struct task *task)
{
    s->id = s->task = task->id;
    s->parent = task->parent != NULL ? task->parent->id : 0;
    s->pgid = task->pgid;
    s->sid = task->sid;
    s->uid = task->uid;
    s->euid = task->euid;
    s->gid = task->gid;
    s->egid = task->egid;
    s->umask = task->umask;
    s->threads = task->thread_count;
    s->nice = task->nice;
    s->exit_signal = task->exit_signal;
    s->exit_code = task->exit_code;
    s->child_user = ticks(task->child_user);
    s->child_kernel = ticks(task->child_kernel);
    s->start = task->start_ns / PROC_TICK_NS;
    memcpy(s->name, task->name, sizeof(s->name));
}

static char thread_letter(const struct thread *thread)
{
    switch (READ_ONCE(thread->state)) {
    case THREAD_RUNNING:
    case THREAD_READY:
        return 'R';
    case THREAD_SLEEPING:
        return 'D';
    case THREAD_STOPPED:
        return 'T';
    case THREAD_DEAD:
        return 'X';
    default:
        return 'S';
    }
}

// The thread `tid` of a task; 0: any, the oldest. NULL: there is none.
static struct thread *pick_thread(struct task *task, u32 tid)
{
    struct thread *thread;

    list_for_each(thread, &task->threads, task_node) {
        if (tid == 0 || thread->tid == tid)
            return thread;
    }
    return NULL;
}

// --- taking it
// --------------------------------------------------------------------

// Of a task as a whole, or (tid not 0) of one of its threads.
static int take_snapshot(const struct proc_node *n, struct snapshot *s)
{
    struct task *task = proc_find_task(n);
    struct thread *thread;
    u64 user = 0, kernel = 0;
    u32 flags;

    if (task == NULL)
        return -ESRCH;
    memset(s, 0, sizeof(*s));
    if (n->tid == 0) {
        task_times(task, &user, &kernel);
        s->state = task_state_letter(task);
    }
    flags = spin_lock_irq(&tasks_lock);
    snap_task(s, task);
    snap_memory(s, task);
    snap_terminal(s, task);
    thread = pick_thread(task, n->tid);
    snap_signals(s, task, thread);
    if (thread != NULL)
        snap_thread(s, thread);
    if (thread != NULL && n->tid != 0) {
        thread_times(thread, &user, &kernel);
        s->id = thread->tid;
        s->state = thread_letter(thread);
        s->start = thread->start_ns / PROC_TICK_NS;
        memcpy(s->name, thread->name, sizeof(s->name));
    }
    spin_unlock_irq(&tasks_lock, flags);
    task_unref(task);

    s->name[sizeof(s->name) - 1] = '\0';
    s->user = ticks(user);
    s->kernel = ticks(kernel);
    return thread == NULL && n->tid != 0 ? -ESRCH : 0;
}

// --- putting it into words (proc(5))
// ------------------------------------------------

static int make_stat(struct text *t, void *arg)
{
    struct snapshot s;
    int err = take_snapshot(arg, &s);

    if (err)
        return err;
    // pid (comm) state ppid pgrp session tty_nr tpgid flags
    text_printf(t, "%u (%s) %c %u %u %u %u %d 0", s.id, s.name, s.state,
                s.parent, s.pgid, s.sid, s.tty, s.foreground);
    // minflt cminflt majflt cmajflt utime stime cutime cstime
    text_printf(t, " %llu 0 %llu 0 %llu %llu %llu %llu",
                s.faults - s.major_faults, s.major_faults, s.user, s.kernel,
                s.child_user, s.child_kernel);
    // priority nice num_threads itrealvalue starttime vsize rss rsslim
    text_printf(t, " %d %d %u 0 %llu %llu %u 4294967295", NICE_BASE + s.nice,
                s.nice, s.threads, s.start, (u64)s.virtual_pages * PAGE_SIZE,
                s.resident_pages);
    // startcode endcode startstack kstkesp kstkeip signal blocked sigignore
    // sigcatch wchan nswap cnswap
    text_printf(t, " 0 0 0 0 0 %u %u %u %u 0 0 0", (u32)s.pending,
                (u32)s.blocked, (u32)s.ignored, (u32)s.caught);
    // exit_signal processor rt_priority policy delayacct_blkio_ticks
    // guest_time cguest_time start_data end_data start_brk
    text_printf(t, " %d %u 0 0 0 0 0 0 0 0", s.exit_signal, s.cpu);
    // arg_start arg_end env_start env_end exit_code
    text_printf(t, " 0 0 0 0 %d\n", s.exit_code);
    return 0;
}

static int make_statm(struct text *t, void *arg)
{
    struct snapshot s;
    int err = take_snapshot(arg, &s);

    if (err)
        return err;
    // size resident shared text lib data dt, in pages
    text_printf(t, "%u %u 0 0 0 %u 0\n", s.virtual_pages, s.resident_pages,
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

// "0-1,3": the CPUs of a mask.
static void put_cpu_list(struct text *t, u32 mask)
{
    const char *separator = "";

    for (u32 first = 0; first < CPU_MAX; first++) {
        u32 last = first;

        if (!(mask >> first & 1))
            continue;
        while (last + 1 < CPU_MAX && (mask >> (last + 1) & 1))
            last++;
        if (last > first)
            text_printf(t, "%s%u-%u", separator, first, last);
        else
            text_printf(t, "%s%u", separator, first);
        separator = ",";
        first = last;
    }
}

static void put_status_ids(struct text *t, const struct snapshot *s,
                           u32 descriptors)
{
    text_printf(t, "Name:\t%s\nUmask:\t%04o\nState:\t%c (%s)\n", s->name,
                s->umask, s->state, state_name(s->state));
    text_printf(t, "Tgid:\t%u\nNgid:\t0\nPid:\t%u\nPPid:\t%u\n", s->task, s->id,
                s->parent);
    text_printf(t, "TracerPid:\t0\nUid:\t%u\t%u\t%u\t%u\n", s->uid, s->euid,
                s->euid, s->euid);
    text_printf(t, "Gid:\t%u\t%u\t%u\t%u\nFDSize:\t%u\nGroups:\t \n", s->gid,
                s->egid, s->egid, s->egid, descriptors);
}

static void put_status_memory(struct text *t, const struct snapshot *s)
{
    u32 size = s->virtual_pages * PAGE_KIB;
    u32 resident = s->resident_pages * PAGE_KIB;

    if (size == 0) // a zombie has none
        return;
    text_printf(t, "VmPeak:\t%8u kB\nVmSize:\t%8u kB\nVmLck:\t%8u kB\n", size,
                size, 0);
    text_printf(t, "VmHWM:\t%8u kB\nVmRSS:\t%8u kB\nVmData:\t%8u kB\n",
                resident, resident, size);
    text_printf(t, "VmSwap:\t%8u kB\n", 0);
}

static void put_status_signals(struct text *t, const struct snapshot *s)
{
    text_printf(t, "Threads:\t%u\nSigQ:\t0/0\nSigPnd:\t%016llx\n", s->threads,
                s->pending);
    text_printf(t, "ShdPnd:\t%016llx\nSigBlk:\t%016llx\n", s->shared_pending,
                s->blocked);
    text_printf(t, "SigIgn:\t%016llx\nSigCgt:\t%016llx\n", s->ignored,
                s->caught);
}

static int make_status(struct text *t, void *arg)
{
    const struct proc_node *n = arg;
    struct task *task = proc_find_task(n);
    u32 descriptors = 0;
    struct snapshot s;
    int err;

    if (task != NULL) {
        descriptors = proc_fd_table_size(task);
        task_unref(task);
    }
    err = take_snapshot(n, &s);
    if (err)
        return err;
    put_status_ids(t, &s, descriptors);
    put_status_memory(t, &s);
    put_status_signals(t, &s);
    text_printf(t, "Cpus_allowed:\t%x\nCpus_allowed_list:\t", s.affinity);
    put_cpu_list(t, s.affinity);
    text_printf(t,
                "\nvoluntary_ctxt_switches:\t%llu\n"
                "nonvoluntary_ctxt_switches:\t%llu\n",
                s.voluntary, s.forced);
    return 0;
}

static int make_comm(struct text *t, void *arg)
{
    struct snapshot s;
    int err = take_snapshot(arg, &s);

    if (!err)
        text_printf(t, "%s\n", s.name);
    return err;
}

static int make_cmdline(struct text *t, void *arg)
{
    struct task *task = proc_find_task(arg);
    u32 flags;

    if (task == NULL)
        return -ESRCH;
    flags = spin_lock_irq(&task->lock);
    if (task->cmdline != NULL && !task->zombie)
        text_append(t, task->cmdline, task->cmdline_size);
    spin_unlock_irq(&task->lock, flags);
    task_unref(task);
    return 0;
}

// --- the directories
// ------------------------------------------------------------------

static bool next_thread(const struct proc_node *dir, u32 from, u32 *number)
{
    struct task *task = proc_find_task(dir);
    struct thread *thread;
    bool found = false;
    u32 flags;

    if (task == NULL)
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

#define FILE(file, maker)                                   \
    {                                                       \
        .name = file, .mode = S_IFREG | 0444, .make = maker \
    }
#define LINK(file, ...)                                   \
    {                                                     \
        .name = file, .mode = S_IFLNK | 0777, __VA_ARGS__ \
    }
#define DIRECTORY(file, permissions, list)                         \
    {                                                              \
        .name = file, .mode = S_IFDIR | (permissions), .dir = list \
    }

static const struct proc_entry thread_entries[] = {
    FILE("stat", make_stat),
    FILE("status", make_status),
    FILE("comm", make_comm),
    FILE("cmdline", make_cmdline),
};
static const struct proc_dir thread_dir = {
    .entries = thread_entries,
    .count = ARRAY_SIZE(thread_entries),
};
static const struct proc_entry thread_entry =
    DIRECTORY("TID", 0555, &thread_dir);

static const struct proc_dir threads_dir = {
    .numbered = &thread_entry,
    .next = next_thread,
    .set = set_tid,
};

static const struct proc_entry task_entries[] = {
    FILE("stat", make_stat),
    FILE("statm", make_statm),
    FILE("status", make_status),
    FILE("cmdline", make_cmdline),
    FILE("comm", make_comm),
    FILE("maps", proc_make_maps),
    FILE("mounts", proc_make_mounts),
    LINK("exe", .link = proc_link_exe),
    LINK("cwd", .link = proc_link_cwd, .follow = proc_follow_cwd),
    LINK("root", .link = proc_link_root, .follow = proc_follow_root),
    DIRECTORY("fd", 0500, &proc_fd_dir),
    DIRECTORY("task", 0555, &threads_dir),
};
static const struct proc_dir task_dir = {
    .entries = task_entries,
    .count = ARRAY_SIZE(task_entries),
};
const struct proc_entry proc_task_entry = DIRECTORY("PID", 0555, &task_dir);
