// Threads: creation, reference counts, the hash table by id.

#include "kernel/sched/thread.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"
#include "kernel/task/task_ids.h"
#include "kernel/task/task_syscalls.h"
#include "kernel/task/users.h"
#include "kernel/trace/calls.h"
#include "lib/format.h"
#include "lib/string.h"

SLAB_CACHE_COUNTED(thread_cache, struct thread, refs);

static struct list tid_table[ID_HASH_SIZE]; // tasks_lock
static u32 threads_alive;                   // tasks_lock

void thread_table_init(void)
{
    for (u32 i = 0; i < ID_HASH_SIZE; i++)
        list_init(&tid_table[i]);
}

static struct thread *find_locked(u32 tid)
{
    spin_assert_held(&tasks_lock);
    struct thread *t;
    list_for_each(t, &tid_table[tid % ID_HASH_SIZE], tid_node) {
        if (t->tid == tid)
            return t;
    }
    return NULL;
}

bool thread_id_used(u32 tid)
{
    return find_locked(tid) != NULL;
}

struct thread *thread_find(u32 tid)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    struct thread *t = find_locked(tid);
    if (t)
        thread_ref(t);
    spin_unlock_irq(&tasks_lock, flags);
    return t;
}

u32 thread_count(void)
{
    return READ_ONCE(threads_alive);
}

void thread_set_id(struct thread *t, u32 tid)
{
    spin_assert_held(&tasks_lock);
    assert(tid);
    list_remove(&t->tid_node);
    WRITE_ONCE(t->tid, tid); // read unlocked by samples (exec) and sysinfo
    list_push_back(&tid_table[tid % ID_HASH_SIZE], &t->tid_node);
}

void thread_attach(struct thread *t, u32 tid)
{
    spin_assert_held(&tasks_lock);
    assert(list_empty(&t->task_node));
    thread_set_id(t, tid);
    list_push_back(&t->task->threads, &t->task_node);
    WRITE_ONCE(t->aspace, t->task->aspace);
    WRITE_ONCE(t->nice, t->task->nice);
    if (t->is_user)
        t->share = payer_share(t->task);
    ADD_ONCE(t->task->thread_count, 1);
    payer_add_threads(t->task, 1);
    ADD_ONCE(t->task->threads_running, 1);
    ADD_ONCE(threads_alive, 1);
}

void thread_named(struct thread *t)
{
    spin_assert_held(&tasks_lock);
    LINKER_SET_FOR_EACH(const struct task_observer, o, task_observers) {
        if ((*o)->named)
            (*o)->named(t);
    }
}

void thread_rename(struct thread *t, const char *name)
{
    assert(t->is_user);
    struct task *task = t->task;
    u32 flags = spin_lock_irq(&tasks_lock);
    spin_lock_irq(&task->lock);
    strlcpy(t->name, name, sizeof(t->name));
    if (t->tid == task->id)
        strlcpy(task->name, name, sizeof(task->name));
    spin_unlock_irq(&task->lock, 0);
    thread_named(t);
    spin_unlock_irq(&tasks_lock, flags);
}

void thread_detach(struct thread *t)
{
    spin_assert_held(&tasks_lock);
    assert(t->task->thread_count && threads_alive);
    LINKER_SET_FOR_EACH(const struct task_observer, o, task_observers) {
        if ((*o)->leaves)
            (*o)->leaves(t);
    }
    list_remove(&t->tid_node);
    list_remove(&t->task_node);
    ADD_ONCE(t->task->thread_count, -1u);
    payer_add_threads(t->task, -1u);
    ADD_ONCE(threads_alive, -1u);
}

int thread_create(struct task *task, const char *name, struct thread **out)
{
    struct thread *t = slab_alloc(&thread_cache);
    if (!t)
        return -ENOMEM;
    memset(t, 0, sizeof(*t));
    if (task != &kernel_task && call_table_borrow(task, t)) {
        slab_free(&thread_cache, t);
        return -ENOMEM;
    }
    t->kstack = kstack_alloc();
    if (!t->kstack) {
        call_table_return(task, t);
        slab_free(&thread_cache, t);
        return -ENOMEM;
    }
    t->refs = 1;
    t->task = task;
    t->is_user = task != &kernel_task;
    t->nice = READ_ONCE(task->nice); // set again when it is attached
#ifdef LOCKDEP
    t->mutexes = &t->lockdep;
#endif
    task_ref(task);
    strlcpy(t->name, name, sizeof(t->name));
    list_init(&t->task_node);
    list_init(&t->tid_node);
    list_init(&t->run_node);
    t->state = THREAD_SLEEPING;
    t->cpu = this_cpu();
    t->start_ns = clock_now_ns();
    call_stack_new_thread(t);
    sched_inherit(t);
    *out = t;
    return 0;
}

struct kthread_start {
    void (*fn)(void *);
    void *arg;
};

static void kthread_entry(void *p)
{
    struct kthread_start start = *(struct kthread_start *)p;
    kfree(p);
    subsystem_enter(IN_OTHER);
    start.fn(start.arg);
    thread_exit();
}

int kthread_create(const char *name, void (*fn)(void *), void *arg,
                   struct thread **out)
{
    struct kthread_start *start = kmalloc(sizeof(*start));
    if (!start)
        return -ENOMEM;
    *start = (struct kthread_start){ fn, arg };
    struct thread *t;
    int err = thread_create(&kernel_task, name, &t);
    if (err) {
        kfree(start);
        return err;
    }
    t->priority = PRIORITY_KERNEL;
    t->affinity = cpu_set_below(cpu_count);
    arch_thread_init(t, kthread_entry, start);
    u32 flags = spin_lock_irq(&tasks_lock);
    thread_attach(t, id_allocate());
    spin_unlock_irq(&tasks_lock, flags);
    if (out) {
        thread_ref(t);
        *out = t;
    }
    thread_start(t);
    return 0;
}

void thread_times(const struct thread *t, u64 *user, u64 *kernel)
{
    const struct cpu *cpu;
    do { // retry if it has moved to another CPU between the reads
        cpu = READ_ONCE(t->cpu);
        ledger_read_thread(cpu, t, user, kernel);
    } while (READ_ONCE(t->cpu) != cpu);
}

void thread_describe(const struct thread *t, char *buf, size_t size)
{
    format(buf, size, "thread %u (%s), task %u (%s)", t->tid, t->name,
           t->task->id, t->task->name);
}

void thread_ref(struct thread *t)
{
    __atomic_fetch_add(&t->refs, 1, __ATOMIC_RELAXED);
}

void thread_unref(struct thread *t)
{
    if (__atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL))
        return;
    assert(t != current && !t->on_cpu);
    arch_thread_destroy(t);
    call_stack_take(t);
    signal_queue_clear(&t->queue);
    kstack_free(t->kstack);
    call_table_return(t->task, t);
    task_unref(t->task);
    slab_free(&thread_cache, t);
}
