// `payers_lock` guards the list and the payers. A list and one lock are enough:
// few users other than root are active at once, and no hot path charges a user.

#include "kernel/task/users.h"

#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"

#define SHARE_PART 8u // a user's share of the low zone: 1/8

struct payer {
    struct list node;
    u32 uid, bytes, tasks;
    u32 threads;    // of these tasks; guarded by tasks_lock
    u64 paid_until; // for interrupts of its timers, in clock_now_ns units
    struct cpu_share share;
};

SLAB_CACHE(payer_cache, struct payer);
static struct spinlock payers_lock = SPINLOCK_INIT("payers");
static struct list payers = LIST_INIT(payers);
static struct payer root = { .tasks = 1 }; // not in the list, and stays

u32 user_share(void)
{
    return frames_low() / SHARE_PART * PAGE_SIZE;
}

static struct payer *find_or_add(u32 uid)
{
    spin_assert_held(&payers_lock);
    struct payer *p;
    if (!uid)
        return &root;
    list_for_each(p, &payers, node) {
        if (p->uid == uid)
            return p;
    }
    p = slab_alloc(&payer_cache);
    if (p) {
        *p = (struct payer){ .uid = uid };
        list_push_back(&payers, &p->node);
    }
    return p;
}

// Frees the payer if nothing is charged to it and it has no task.
static void drop_if_unused(struct payer *p)
{
    spin_assert_held(&payers_lock);
    if (p->bytes || p->tasks)
        return;
    list_remove(&p->node);
    slab_free(&payer_cache, p);
}

bool user_charge(u32 uid, u32 bytes, struct payer **out)
{
    assert_checked(bytes);
    *out = NULL;
    if (!uid)
        return true;
    u32 flags = spin_lock_irq(&payers_lock);
    struct payer *p = find_or_add(uid);
    bool fits = p && bytes <= user_share() - p->bytes;
    if (fits) {
        p->bytes += bytes;
        *out = p;
    } else if (p) {
        drop_if_unused(p);
    }
    spin_unlock_irq(&payers_lock, flags);
    return fits;
}

bool charge_current(u32 bytes, struct payer **out)
{
    return user_charge(READ_ONCE(current_task()->uid), bytes, out);
}

bool payer_charge(struct payer *p, u32 bytes)
{
    if (likely(!p))
        return true;
    u32 flags = spin_lock_irq(&payers_lock);
    assert(p->bytes);
    bool fits = bytes <= user_share() - p->bytes;
    if (fits)
        p->bytes += bytes;
    spin_unlock_irq(&payers_lock, flags);
    return fits;
}

void payer_discharge(struct payer *p, u32 bytes)
{
    u32 flags = spin_lock_irq(&payers_lock);
    assert(bytes <= p->bytes);
    p->bytes -= bytes;
    drop_if_unused(p);
    spin_unlock_irq(&payers_lock, flags);
}

// --- the users of tasks -----------------------------------------------------

static void leave(struct payer *p)
{
    spin_assert_held(&payers_lock);
    if (!p)
        return;
    p->tasks--;
    assert_checked(p->tasks || !READ_ONCE(p->share.competing));
    drop_if_unused(p);
}

static void move_threads(struct task *t, struct payer *from, struct payer *to)
{
    spin_assert_held(&tasks_lock);
    ADD_ONCE(from->threads, -t->thread_count);
    ADD_ONCE(to->threads, t->thread_count);
}

bool payer_set(struct task *t, u32 uid)
{
    u32 flags = spin_lock_irq(&payers_lock);
    struct payer *p = find_or_add(uid), *before = t->payer;
    if (p) {
        p->tasks++;
        t->payer = p;
        if (t->thread_count)
            move_threads(t, before, p);
        struct thread *th;
        list_for_each(th, &t->threads, task_node)
            sched_set_share(th, &p->share);
        leave(before);
    }
    spin_unlock_irq(&payers_lock, flags);
    return p;
}

struct cpu_share *payer_share(const struct task *t)
{
    spin_assert_held(&tasks_lock);
    return sched_share(&t->payer->share);
}

void payer_leave(struct task *t)
{
    u32 flags = spin_lock_irq(&payers_lock);
    leave(t->payer);
    spin_unlock_irq(&payers_lock, flags);
}

void payer_add_threads(const struct task *t, u32 n)
{
    spin_assert_held(&tasks_lock);
    if (t->payer)
        ADD_ONCE(t->payer->threads, n);
}

// With the lock the payer stays: another thread may change the task's user.
u32 payer_threads(const struct task *t)
{
    u32 flags = spin_lock_irq(&payers_lock);
    u32 n = READ_ONCE(t->payer->threads);
    spin_unlock_irq(&payers_lock, flags);
    return n;
}

u64 payer_pay_time(const struct task *t, u64 least, u64 ns)
{
    u32 flags = spin_lock_irq(&payers_lock);
    struct payer *p = t->payer;
    u64 paid = p->paid_until = MAX(p->paid_until, least) + ns;
    spin_unlock_irq(&payers_lock, flags);
    return paid;
}

// --- statistics -------------------------------------------------------------

struct search {
    u32 from;
    bool found;
    struct user_statistics first;
};

// Whether `uid` is the lowest user id >= `from` found so far. If it is lower
// than the previous one, starts its count.
static bool is_first(struct search *s, u32 uid)
{
    if (uid < s->from || (s->found && uid > s->first.uid))
        return false;
    if (!s->found || uid < s->first.uid)
        s->first = (struct user_statistics){ .uid = uid };
    s->found = true;
    return true;
}

static void count_task(struct task *t, void *arg)
{
    struct search *s = arg;
    if (!is_first(s, READ_ONCE(t->uid)))
        return;
    s->first.tasks++;
    s->first.threads += t->thread_count;
    if (t->aspace)
        s->first.pages += READ_ONCE(t->aspace->resident_pages) +
                          READ_ONCE(t->aspace->pt.tables);
}

static void count_payer(const struct payer *p, struct search *s)
{
    spin_assert_held(&payers_lock);
    if (p->bytes && is_first(s, p->uid))
        s->first.held = p->bytes;
}

bool users_next(u32 uid, struct user_statistics *out)
{
    struct search s = { .from = uid };
    const struct payer *p;
    u32 flags = spin_lock_irq(&tasks_lock);
    task_for_each_locked(count_task, &s);
    spin_unlock_irq(&tasks_lock, flags);
    flags = spin_lock_irq(&payers_lock);
    list_for_each(p, &payers, node)
        count_payer(p, &s);
    spin_unlock_irq(&payers_lock, flags);
    *out = s.first;
    return s.found;
}
