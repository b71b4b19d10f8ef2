// system.tasks and system.threads.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/providers.h"
#include "kernel/monitor/snapshot.h"
#include "kernel/monitor/sysinfo.h"
#include "kernel/monitor/sysinfo_values.h"
#include "kernel/sched/statistics.h"
#include "kernel/sched/stop_machine.h"
#include "kernel/task/ipc_counts.h"
#include "kernel/task/permission.h"
#include "kernel/task/task.h"
#include "lib/string.h"

// ---- a thread

static u32 state_of(enum thread_state s)
{
    switch (s) {
    case THREAD_RUNNING:
        return SYSINFO_RUNNING;
    case THREAD_READY:
        return SYSINFO_READY;
    case THREAD_SLEEPING:
        return SYSINFO_SLEEPING;
    case THREAD_WAITING:
        return SYSINFO_WAITING;
    case THREAD_STOPPED:
        return SYSINFO_STOPPED;
    default:
        return SYSINFO_DEAD;
    }
}

// exec renames the task and the thread, under the task's lock.
static void copy_name(struct task *t, const char *name, char *out)
{
    u32 flags = spin_lock_irq(&t->lock);
    strlcpy(out, name, TASK_NAME_MAX);
    spin_unlock_irq(&t->lock, flags);
}

static void fill_thread(struct thread *t, struct sysinfo_thread *out)
{
    struct thread_statistics s;
    u64 user, kernel;
    thread_statistics(t, &s);
    thread_times(t, &user, &kernel);
    out->id = READ_ONCE(t->tid); // exec may give it its task's id
    out->task = t->task->id;
    out->state = state_of(s.state);
    out->cpu = s.cpu;
    out->priority = s.priority;
    cpu_set_list(&s.affinity, out->affinity, sizeof(out->affinity));
    out->user = user;
    out->kernel = kernel;
    out->voluntary = s.voluntary;
    out->forced = s.forced;
    out->ready = thread_ready_ns(t);
    out->started = t->start_ns;
    copy_name(t->task, t->name, out->name);
    if (s.wait_on && may_profile(t->task))
        strlcpy(out->wait_on, s.wait_on, sizeof(out->wait_on));
}

int sysinfo_fill_thread(u32 id, struct sysinfo_thread *out)
{
    assert_may_sleep();
    struct thread *t = thread_find(id);

    if (!t)
        return -ENOENT;
    memset(out, 0, sizeof(*out));
    fill_thread(t, out);
    thread_unref(t);
    return 0;
}

// ---- a task

// Under tasks_lock, briefly: a task that is not exiting has an address space.
static void fill_locked(struct task *t, struct sysinfo_task *out)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    const struct aspace *as = t->exiting ? NULL : t->aspace;
    out->group = t->pgid;
    out->session = t->sid;
    out->child_user = t->children_usage.user;
    out->child_kernel = t->children_usage.kernel;
    if (as) {
        out->virtual = (u64)READ_ONCE(as->virtual_pages) * PAGE_SIZE;
        out->resident = (u64)READ_ONCE(as->resident_pages) * PAGE_SIZE;
    }
    spin_unlock_irq(&tasks_lock, flags);
}

static void fill_path(struct task *t, struct sysinfo_task *out)
{
    bool may = may_profile(t); // hide other users' paths, addresses
    u32 flags = spin_lock_irq(&t->lock);
    size_t len = t->path ? strlen(t->path) : 0;
    size_t skip = len - MIN(len, sizeof(out->path) - 1);
    if (t->path && may)
        strlcpy(out->path, t->path + skip, sizeof(out->path));
    out->load_bias = may ? t->load_bias : 0;
    spin_unlock_irq(&t->lock, flags);
}

static void fill_ipc(const struct task *t, struct sysinfo_task *out)
{
    struct ipc_counts c;
    ipc_task_counts(t, &c);
    out->call_sent = c.call_sent;
    out->call_received = c.call_received;
    out->answer_sent = c.answer_sent;
    out->answer_received = c.answer_received;
    out->irq_notif_received = c.irq_notif_received;
    out->forwarded = c.forwarded;
}

// Time, faults and state, from the task's threads. The cursor is at the first
// of them and is moved past the last.
static void fill_from_threads(const struct snapshot_task *st,
                              struct chain_cursor *cur, struct thread **th,
                              struct sysinfo_task *out)
{
    assert_checked(!st->threads || th == chain_current(cur));
    out->state = SYSINFO_ZOMBIE;
    out->user = st->dead_user;
    out->kernel = st->dead_kernel;
    out->faults = st->dead_faults;
    for (u32 i = 0; i < st->threads; i++, th = chain_next(cur)) {
        u64 user, kernel;
        assert_checked(th);
        thread_times(*th, &user, &kernel);
        out->user += user;
        out->kernel += kernel;
        out->faults += READ_ONCE((*th)->faults);
        // States are in order of activity. Dead threads are skipped: between
        // the end of its last thread and becoming a zombie, the task must not
        // be reported as dead.
        u32 state = state_of(READ_ONCE((*th)->state));
        if (state != SYSINFO_DEAD)
            out->state = MIN(out->state, state);
    }
}

static void fill_task(const struct snapshot_task *st, struct sysinfo_task *out)
{
    struct task *t = st->task;
    out->id = t->id;
    out->parent = st->parent;
    out->uid = READ_ONCE(t->uid);
    out->threads = st->threads;
    out->nice = READ_ONCE(t->nice);
    out->started = t->start_ns;
    copy_name(t, t->name, out->name);
    fill_locked(t, out);
    fill_path(t, out);
    fill_ipc(t, out);
}

static int put_tasks(struct chain *out, u32 id)
{
    struct chain_cursor task_cur, thread_cur;
    struct snapshot s;
    int err = snapshot_take(&s, id);
    if (!err)
        err = chain_reserve(out, s.tasks.count);
    struct thread **th = chain_begin(&thread_cur, &s.threads);
    for (struct snapshot_task *st = chain_begin(&task_cur, &s.tasks);
         st && !err; st = chain_next(&task_cur)) {
        struct sysinfo_task *record = chain_add(out);
        assert_checked(record); // memory was reserved
        fill_from_threads(st, &thread_cur, th, record);
        th = chain_current(&thread_cur);
        fill_task(st, record);
    }
    snapshot_free(&s);
    return err;
}

static int put_threads(struct chain *out, u32 task)
{
    struct chain_cursor cur;
    struct snapshot s;
    int err = snapshot_take(&s, task);
    if (!err)
        err = chain_reserve(out, s.threads.count);
    for (struct thread **th = chain_begin(&cur, &s.threads); th && !err;
         th = chain_next(&cur))
        fill_thread(*th, chain_add(out));
    snapshot_free(&s);
    return err;
}

int sysinfo_fill_task(u32 id, struct sysinfo_task *out)
{
    assert_may_sleep();
    struct chain records;
    int err;

    chain_init(&records, sizeof(*out));
    err = id == SNAPSHOT_ALL ? -ENOENT : put_tasks(&records, id);
    if (!err)
        memcpy(out, records.first->data, sizeof(*out));
    chain_free(&records);
    return err;
}

// ---- nodes

static int make_tasks(struct chain *out, u32 number UNUSED)
{
    return put_tasks(out, SNAPSHOT_ALL);
}

static int make_task(struct chain *out, u32 id)
{
    return id == SNAPSHOT_ALL ? -ENOENT : put_tasks(out, id);
}

static int make_threads(struct chain *out, u32 number UNUSED)
{
    return put_threads(out, SNAPSHOT_ALL);
}

static int make_task_threads(struct chain *out, u32 id)
{
    return id == SNAPSHOT_ALL ? -ENOENT : put_threads(out, id);
}

static int make_thread(struct chain *out, u32 id)
{
    struct sysinfo_thread *record = chain_add(out);
    return record ? sysinfo_fill_thread(id, record) : -ENOMEM;
}

static int list_tasks(struct chain *numbers)
{
    struct chain_cursor cur;
    struct snapshot s;
    int err = snapshot_take(&s, SNAPSHOT_ALL);
    if (!err)
        err = chain_reserve(numbers, s.tasks.count);
    for (struct snapshot_task *st = chain_begin(&cur, &s.tasks); st && !err;
         st = chain_next(&cur))
        *(u32 *)chain_put(numbers) = st->task->id;
    snapshot_free(&s);
    return err;
}

static int list_threads(struct chain *numbers)
{
    struct chain_cursor cur;
    struct snapshot s;
    int err = snapshot_take(&s, SNAPSHOT_ALL);
    if (!err)
        err = chain_reserve(numbers, s.threads.count);
    for (struct thread **th = chain_begin(&cur, &s.threads); th && !err;
         th = chain_next(&cur))
        *(u32 *)chain_put(numbers) = READ_ONCE((*th)->tid);
    snapshot_free(&s);
    return err;
}

static int make_longest_hold(struct chain *out, u32 number UNUSED)
{
    u64 *value = chain_add(out);
    if (value)
        *value = snapshot_longest_hold();
    return 0;
}

static int make_longest_stop(struct chain *out, u32 number UNUSED)
{
    u64 *value = chain_add(out);
    if (value)
        *value = stop_machine_longest();
    return 0;
}

static int make_snapshots(struct chain *out, u32 number UNUSED)
{
    u64 *value = chain_add(out);
    if (value)
        *value = snapshot_count();
    return 0;
}

#define TASKS SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_TASK)
#define THREADS SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_THREAD)

SYSINFO_NODE(tasks, .path = "system.tasks", .type = TASKS, .make = make_tasks);
SYSINFO_NODE(task, .path = "system.tasks.#", .type = TASKS, .make = make_task,
             .list = list_tasks);
SYSINFO_NODE(task_threads, .path = "system.tasks.#.threads", .type = THREADS,
             .make = make_task_threads);
SYSINFO_NODE(threads, .path = "system.threads", .type = THREADS,
             .make = make_threads);
SYSINFO_NODE(thread, .path = "system.threads.#", .type = THREADS,
             .make = make_thread, .list = list_threads);
SYSINFO_NODE(longest_hold, .path = "system.snapshots.longest",
             .type = SYSINFO_TYPE(SYSINFO_VALUE, SYSINFO_CYCLES),
             .make = make_longest_hold);
SYSINFO_NODE(longest_stop, .path = "system.snapshots.audit",
             .type = SYSINFO_TYPE(SYSINFO_VALUE, SYSINFO_CYCLES),
             .make = make_longest_stop);
SYSINFO_NODE(snapshots, .path = "system.snapshots.taken",
             .type = SYSINFO_TYPE(SYSINFO_VALUE, SYSINFO_COUNT),
             .make = make_snapshots);
