// Snapshots of tasks and threads: see snapshot.h.
//
// statistics_lock guards the two statistics about snapshots themselves.

#include "kernel/monitor/snapshot.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/task/task.h"

// Spare room for tasks created while memory for the known ones is allocated.
#define SPARE(n) ((n) + (n) / 8 + 8)

static struct spinlock statistics_lock = SPINLOCK_INIT("snapshots");
static u64 longest_hold, taken;

static void count_one(u64 cycles)
{
    spin_lock(&statistics_lock);
    taken++;
    longest_hold = MAX(longest_hold, cycles);
    spin_unlock(&statistics_lock);
}

u64 snapshot_longest_hold(void)
{
    spin_lock(&statistics_lock);
    u64 cycles = longest_hold;
    spin_unlock(&statistics_lock);
    return cycles;
}

u64 snapshot_count(void)
{
    spin_lock(&statistics_lock);
    u64 n = taken;
    spin_unlock(&statistics_lock);
    return n;
}

// ---- with tasks_lock held: no allocation, minimal work

static void put_task(struct task *t, void *arg)
{
    spin_assert_held(&tasks_lock);
    struct snapshot *s = arg;
    assert_checked(t == &kernel_task || !list_empty(&t->all_node));
    struct snapshot_task *st = chain_put(&s->tasks);
    struct thread *th;

    task_ref(t);
    st->task = t;
    // A task in the tables has a living parent: orphans are reparented to init.
    st->parent = t->parent ? t->parent->id : 0;
    st->threads = t->thread_count;
    st->dead_user = t->dead.user;
    st->dead_kernel = t->dead.kernel;
    st->dead_faults = t->dead.faults;
    list_for_each(th, &t->threads, task_node) {
        thread_ref(th);
        *(struct thread **)chain_put(&s->threads) = th;
    }
}

static bool has_room(const struct snapshot *s, u32 tasks, u32 threads)
{
    spin_assert_held(&tasks_lock);
    return s->tasks.room >= tasks && s->threads.room >= threads;
}

static bool put_all(struct snapshot *s)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    u64 began = rdtsc(), cycles;
    bool fits = has_room(s, task_count() + 1, thread_count());
    if (fits) {
        put_task(&kernel_task, s);
        task_for_each_locked(put_task, s);
    }
    cycles = rdtsc() - began;
    spin_unlock_irq(&tasks_lock, flags);
    if (fits)
        count_one(cycles);
    return fits;
}

// 0; -ENOENT: the task has left the tables (it may outlive its parent);
// -EAGAIN: it has more threads than there is room for.
static int put_one(struct snapshot *s, struct task *t)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    int err = 0;
    if (t != &kernel_task && list_empty(&t->all_node))
        err = -ENOENT;
    else if (!has_room(s, 1, t->thread_count))
        err = -EAGAIN;
    else
        put_task(t, s);
    spin_unlock_irq(&tasks_lock, flags);
    return err;
}

// ---- with tasks_lock released

static int reserve(struct snapshot *s, u32 tasks, u32 threads)
{
    assert_may_sleep();
    int err = chain_reserve(&s->tasks, tasks);
    return err ? err : chain_reserve(&s->threads, threads);
}

static int take_all(struct snapshot *s)
{
    int err;
    do {
        err = reserve(s, SPARE(task_count()), SPARE(thread_count()));
    } while (!err && !put_all(s));
    return err;
}

static int take_one(struct snapshot *s, u32 id)
{
    struct task *t = id ? task_find(id) : &kernel_task;
    int err;
    if (!t)
        return -ENOENT;
    do {
        err = reserve(s, 1, READ_ONCE(t->thread_count) + 1);
        if (!err)
            err = put_one(s, t);
    } while (err == -EAGAIN);
    if (id)
        task_unref(t);
    return err;
}

int snapshot_take(struct snapshot *s, u32 task)
{
    assert_may_sleep();
    chain_init(&s->tasks, sizeof(struct snapshot_task));
    chain_init(&s->threads, sizeof(struct thread *));
    return task == SNAPSHOT_ALL ? take_all(s) : take_one(s, task);
}

void snapshot_free(struct snapshot *s)
{
    assert_may_sleep();
    struct chain_cursor cur;

    for (struct thread **th = chain_begin(&cur, &s->threads); th;
         th = chain_next(&cur))
        thread_unref(*th);
    for (struct snapshot_task *st = chain_begin(&cur, &s->tasks); st;
         st = chain_next(&cur))
        task_unref(st->task);
    chain_free(&s->threads);
    chain_free(&s->tasks);
}
