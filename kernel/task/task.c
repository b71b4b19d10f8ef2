// Tasks: the table, references, creation, times.

#include "kernel/task/task.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/file_pages.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/task/clone.h"
#include "kernel/task/task_ids.h"
#include "kernel/task/task_syscalls.h"
#include "kernel/task/users.h"
#include "lib/string.h"

struct spinlock tasks_lock = SPINLOCK_INIT("tasks");

struct task kernel_task = {
    .refs = 1,
    .name = "kernel",
    .lock = SPINLOCK_INIT("task"),
    .signals.lock = SPINLOCK_INIT("signals"),
    .umask = 022,
};

SLAB_CACHE_COUNTED(task_cache, struct task, refs);

static struct list task_table[ID_HASH_SIZE];
static struct list all_tasks = LIST_INIT(all_tasks);
static u32 tasks_alive;
static u64 tasks_ever;
static u32 newest_id;
static u32 last_id = INIT_ID;
static bool ids_wrapped;

void task_table_init(void)
{
    for (u32 i = 0; i < ID_HASH_SIZE; i++)
        list_init(&task_table[i]);
    thread_table_init();
    list_init(&kernel_task.children);
    list_init(&kernel_task.sibling);
    list_init(&kernel_task.threads);
    waitq_init(&kernel_task.child_wait, "wait");
    memcpy(kernel_task.limits, limits_first, sizeof(limits_first));
}

struct task *task_find_locked(u32 id)
{
    spin_assert_held(&tasks_lock);
    struct task *t;
    list_for_each(t, &task_table[id % ID_HASH_SIZE], table_node) {
        if (t->id == id)
            return t;
    }
    return NULL;
}

static bool id_used(u32 id)
{
    spin_assert_held(&tasks_lock);
    if (task_find_locked(id) || thread_id_used(id))
        return true;
    struct task *t;
    list_for_each(t, &all_tasks, all_node) {
        if (t->pgid == id || t->sid == id)
            return true;
    }
    return false;
}

u32 id_allocate(void)
{
    spin_assert_held(&tasks_lock);
    do {
        if (++last_id > ID_MAX) {
            last_id = INIT_ID + 1;
            ids_wrapped = true;
        }
    } while (ids_wrapped && id_used(last_id));
    return last_id;
}

void task_table_add(struct task *t, u32 id)
{
    spin_assert_held(&tasks_lock);
    assert(id && id <= ID_MAX);
    assert(list_empty(&t->all_node));
    t->id = id;
    list_push_back(&task_table[id % ID_HASH_SIZE], &t->table_node);
    list_push_back(&all_tasks, &t->all_node);
    ADD_ONCE(tasks_alive, 1);
    t->arrival = tasks_ever++;
    WRITE_ONCE(newest_id, id);
}

void task_table_remove(struct task *t)
{
    spin_assert_held(&tasks_lock);
    assert(!list_empty(&t->all_node));
    list_remove(&t->table_node);
    list_remove(&t->all_node);
    ADD_ONCE(tasks_alive, -1u);
}

struct task *task_find(u32 id)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    struct task *t = task_find_locked(id);
    if (t)
        task_ref(t);
    spin_unlock_irq(&tasks_lock, flags);
    return t;
}

struct task *task_next(u32 id)
{
    struct task *best = NULL, *t;
    u32 flags = spin_lock_irq(&tasks_lock);
    list_for_each(t, &all_tasks, all_node) {
        if (t->id >= id && (!best || t->id < best->id))
            best = t;
    }
    if (best)
        task_ref(best);
    spin_unlock_irq(&tasks_lock, flags);
    return best;
}

static bool is_listed(const struct task *t)
{
    return !list_empty(&t->all_node);
}

// The list is in the order of creation.
static struct list *listed_after(const struct task *last)
{
    spin_assert_held(&tasks_lock);
    if (!last)
        return all_tasks.next;
    if (is_listed(last))
        return last->all_node.next;
    struct task *t;
    list_for_each(t, &all_tasks, all_node) {
        if (t->arrival > last->arrival)
            break;
    }
    return &t->all_node;
}

struct task *task_walk(struct task *last, u32 pgid)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    struct list *n = listed_after(last);
    struct task *t = NULL;
    for (; n != &all_tasks; n = n->next) {
        t = container_of(n, struct task, all_node);
        if (!t->zombie && (!pgid || t->pgid == pgid))
            break;
    }
    t = n == &all_tasks ? NULL : t;
    if (t)
        task_ref(t);
    spin_unlock_irq(&tasks_lock, flags);
    if (last)
        task_unref(last);
    return t;
}

u32 task_count(void)
{
    return READ_ONCE(tasks_alive);
}

u64 tasks_created(void)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    u64 n = tasks_ever;
    spin_unlock_irq(&tasks_lock, flags);
    return n;
}

u32 task_newest(void)
{
    return READ_ONCE(newest_id);
}

void task_for_each_locked(void (*fn)(struct task *t, void *arg), void *arg)
{
    spin_assert_held(&tasks_lock);
    struct task *t, *next;
    list_for_each_safe(t, next, &all_tasks, all_node)
        fn(t, arg);
}

int task_limits_check(void)
{
    u32 total = frames_total(), most = MAX(total / 64, 64u);
    u32 reserve =
        may_use_root_reserve() ? MAX(total / 32, 128u) : MAX(total / 8, 512u);
    // At most one thread for each 64 frames (256 KiB) of memory. A reserve is
    // kept for the threads that exist already, so that a fork bomb ends by an
    // error of fork, not by the death of the shell. The reserve for ordinary
    // users is larger than root's part of memory (kernel/mm/frame.c), from
    // which root starts tasks. One user may have half of the threads.
    if (thread_count() >= most)
        return -EAGAIN;
    if (frames_free() < reserve)
        return -ENOMEM;
    return limits_check_threads(most / 2);
}

void task_ref(struct task *t)
{
    u32 old = __atomic_fetch_add(&t->refs, 1, __ATOMIC_RELAXED);
    assert(old); // the object is still referenced
}

void task_unref(struct task *t)
{
    if (__atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL))
        return;
    assert(t != &kernel_task);
    signal_queue_clear(&t->signals.queue); // zombies can get signals, too
    call_tables_free(t);
    payer_leave(t);
    kfree(t->path);
    kfree(t->cmdline);
    slab_free(&task_cache, t);
}

struct aspace *task_aspace(struct task *t)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    struct aspace *as = t->exiting ? NULL : t->aspace;
    if (as)
        aspace_ref(as);
    spin_unlock_irq(&tasks_lock, flags);
    return as;
}

static int copy_resources(struct task *t, struct task *parent, u32 flags)
{
    if (!parent->aspace) // init, of a kernel thread: exec creates the aspace
        t->aspace = NULL;
    else if (flags & CLONE_VM)
        aspace_ref(t->aspace = parent->aspace);
    else if (aspace_fork(parent->aspace, &t->aspace))
        return -ENOMEM;

    if (!parent->files) {
        if (files_create(&t->files))
            return -ENOMEM;
    } else if (flags & CLONE_FILES) {
        files_ref(t->files = parent->files);
    } else if (files_fork(parent->files, &t->files)) {
        return -ENOMEM;
    }
    return 0;
}

static void copy_names(struct task *t, struct task *parent)
{
    u32 irq = spin_lock_irq(&parent->lock);
    strlcpy(t->name, parent->name, sizeof(t->name));
    t->path = parent->path ? kstrdup(parent->path) : NULL;
    if (parent->cmdline)
        t->cmdline = kmalloc(parent->cmdline_size);
    if (t->cmdline) {
        memcpy(t->cmdline, parent->cmdline, parent->cmdline_size);
        t->cmdline_size = parent->cmdline_size;
    }
    memcpy(t->build_id, parent->build_id, parent->build_id_size);
    t->build_id_size = parent->build_id_size;
    t->load_bias = parent->load_bias;
    spin_unlock_irq(&parent->lock, irq);
}

int task_create(struct task *parent, u32 flags, struct task **out)
{
    struct task *t = slab_alloc(&task_cache);
    if (!t)
        return -ENOMEM;
    memset(t, 0, sizeof(*t));
    t->refs = 1;
    spin_init(&t->lock, "task");
    spin_init(&t->signals.lock, "signals");
    list_init(&t->table_node);
    list_init(&t->all_node);
    list_init(&t->children);
    list_init(&t->sibling);
    list_init(&t->threads);
    waitq_init(&t->child_wait, "wait");
    cpu_timers_init(&t->cpu_timers);
    if (copy_resources(t, parent, flags)) {
        if (t->aspace)
            aspace_unref(t->aspace);
        slab_free(&task_cache, t);
        return -ENOMEM;
    }
    copy_names(t, parent);
    u32 irq = spin_lock_irq(&parent->signals.lock);
    memcpy(t->signals.action, parent->signals.action,
           sizeof(t->signals.action));
    spin_unlock_irq(&parent->signals.lock, irq);

    irq = spin_lock_irq(&tasks_lock); // a sibling thread may change directory
    vnode_ref(t->cwd = parent->cwd);
    vnode_ref(t->root = parent->root);
    spin_unlock_irq(&tasks_lock, irq);
    t->umask = READ_ONCE(parent->umask);
    credentials_inherit(t, parent);
    t->personality = READ_ONCE(parent->personality);
    t->nice = READ_ONCE(parent->nice);
    limits_inherit(t, parent);
    t->start_ns = clock_now_ns();
    *out = t;
    return 0;
}

void task_times_locked(struct task *t, u64 *user, u64 *kernel)
{
    spin_assert_held(&tasks_lock);
    *user = t->dead.user;
    *kernel = t->dead.kernel;
    struct thread *th;
    list_for_each(th, &t->threads, task_node) {
        u64 u, k;
        thread_times(th, &u, &k);
        *user += u;
        *kernel += k;
    }
}

void task_times(struct task *t, u64 *user, u64 *kernel)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    task_times_locked(t, user, kernel);
    spin_unlock_irq(&tasks_lock, flags);
}

void task_child_times(struct task *t, u64 *user, u64 *kernel)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    *user = t->children_usage.user;
    *kernel = t->children_usage.kernel;
    spin_unlock_irq(&tasks_lock, flags);
}

void task_set_aspace(struct task *t, struct aspace *as)
{
    spin_assert_held(&tasks_lock);
    struct thread *each;
    WRITE_ONCE(t->aspace, as); // profile samples read it unlocked
    list_for_each(each, &t->threads, task_node)
        WRITE_ONCE(each->aspace, as);
}

void task_set_nice(struct task *t, int nice)
{
    spin_assert_held(&tasks_lock);
    struct thread *each;
    WRITE_ONCE(t->nice, nice);
    list_for_each(each, &t->threads, task_node)
        WRITE_ONCE(each->nice, nice);
}
