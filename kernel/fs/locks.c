// Advisory locks: a list for each file that has been locked, created by its
// first lock and freed with the vnode. A task that never locks a file pays
// nothing for the locks of other files.
//
// A list's mutex guards it; its waiters watch its generation, which changes
// whenever a range may have become free. A lock does not outlast the owner's
// last descriptor of the file, so it needs no reference to the vnode.
//
// `waits_lock` (a mutex, taken with a list's mutex held) guards the list of the
// waits for record locks. An owner that would wait for itself, directly or
// through other owners, gets -EDEADLK.
#include "kernel/fs/locks.h"
#include "kernel/base/log.h"

#include "kernel/base/errno.h"
#include "kernel/mm/heap.h"
#include "kernel/task/users.h"

// Far more than programs need; a chain is followed with the mutex held.
#define CHAIN_MAX 1000u

struct file_lock {
    struct list node;
    const void *owner;
    struct payer *payer;
    struct lock_range range;
};

struct file_locks {
    struct mutex lock;
    struct list held; // struct file_lock
    struct waitq wait;
    u32 generation;
};

// An owner that waits for another owner to unlock something. The wait is
// pending while the list's generation is still the recorded one.
struct lock_wait {
    struct list node;
    const void *owner, *holder;
    const struct file_locks *locks;
    u32 generation;
};

SLAB_CACHE(lock_cache, struct file_lock);
SLAB_CACHE(locks_cache, struct file_locks);
static struct mutex waits_lock = MUTEX_INIT(waits_lock, "file lock waits");
static struct list waits = LIST_INIT(waits);

// NULL: the file has never had a lock.
static struct file_locks *locks_of(struct vnode *v)
{
    return __atomic_load_n(&v->locks, __ATOMIC_ACQUIRE);
}

static struct file_locks *locks_make(struct vnode *v)
{
    struct file_locks *fl = locks_of(v), *other = NULL;
    if (fl)
        return fl;
    fl = slab_alloc(&locks_cache);
    if (!fl)
        return NULL;
    *fl = (struct file_locks){ .generation = 0 };
    mutex_init(&fl->lock, "file locks");
    waitq_init(&fl->wait, "file lock");
    list_init(&fl->held);
    if (__atomic_compare_exchange_n(&v->locks, &other, fl, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fl;
    slab_free(&locks_cache, fl);
    return other;
}

void locks_free(struct file_locks *fl)
{
    assert(list_empty(&fl->held) && waitq_empty(&fl->wait));
    slab_free(&locks_cache, fl);
}

static bool overlaps(const struct file_lock *l, const struct lock_range *r)
{
    return l->range.record == r->record && l->range.start <= r->end &&
           r->start <= l->range.end;
}

static struct file_lock *find_conflict(const struct file_locks *fl,
                                       const void *owner,
                                       const struct lock_range *r)
{
    mutex_assert_held(&fl->lock);
    struct file_lock *l;
    list_for_each(l, &fl->held, node) {
        if (overlaps(l, r) && l->owner != owner &&
            (l->range.type == LOCK_WRITE || r->type == LOCK_WRITE))
            return l;
    }
    return NULL;
}

// NULL: no memory, or the user's limit is reached.
static struct file_lock *lock_new(void)
{
    struct payer *payer;
    if (!charge_current(sizeof(struct file_lock), &payer))
        return NULL;
    struct file_lock *l = slab_alloc(&lock_cache);
    if (l)
        l->payer = payer;
    else
        user_discharge(payer, sizeof(*l));
    return l;
}

static void lock_free(struct file_lock *l)
{
    user_discharge(l->payer, sizeof(*l));
    slab_free(&lock_cache, l);
}

static void add(struct file_locks *fl, struct file_lock *l, const void *owner,
                const struct lock_range *r)
{
    mutex_assert_held(&fl->lock);
    l->owner = owner;
    l->range = *r;
    list_push_back(&fl->held, &l->node);
}

static void remove(struct file_lock *l)
{
    list_remove(&l->node);
    lock_free(l);
}

static void wake_waiters(struct file_locks *fl)
{
    mutex_assert_held(&fl->lock);
    WRITE_ONCE(fl->generation, fl->generation + 1);
    waitq_wake_all(&fl->wait);
}

// Whether unlocking the range may leave parts of one lock on both sides of it.
static bool splits(const struct lock_range *r)
{
    return r->start && r->end < INT64_MAX;
}

// Removes the range from the owner's locks. The one lock that may be split
// takes *spare.
static void cut_out(struct file_locks *fl, const void *owner,
                    const struct lock_range *r, struct file_lock **spare)
{
    mutex_assert_held(&fl->lock);
    struct file_lock *l, *next;
    list_for_each_safe(l, next, &fl->held, node) {
        if (!overlaps(l, r) || l->owner != owner)
            continue;
        bool left = l->range.start < r->start;
        bool right = l->range.end > r->end;
        if (left && right) {
            struct lock_range rest = l->range;
            rest.start = r->end + 1;
            add(fl, *spare, owner, &rest);
            *spare = NULL;
        }
        if (left)
            l->range.end = r->start - 1;
        else if (right)
            l->range.start = r->end + 1;
        else
            remove(l);
    }
}

// --- waiting ----------------------------------------------------------------

// A wait whose generation is over is ignored, even if its thread has not run
// since.
static const struct lock_wait *wait_of(const void *owner)
{
    mutex_assert_held(&waits_lock);
    const struct lock_wait *w;
    list_for_each(w, &waits, node) {
        if (w->owner == owner &&
            READ_ONCE(w->locks->generation) == w->generation)
            return w;
    }
    return NULL;
}

// Deadlock detection: follows the chain of waits from the holder on. The waits
// form no cycle, because any wait that would close one is refused. But several
// threads of an owner may wait, and only one wait of each owner is followed; so
// the number of steps is bounded.
static int wait_begin(struct lock_wait *w)
{
    u32 steps = 0;
    int err = 0;
    mutex_lock(&waits_lock);
    const struct lock_wait *next = wait_of(w->holder);
    while (next && !err && steps++ < CHAIN_MAX) {
        if (next->holder == w->owner)
            err = -EDEADLK;
        next = wait_of(next->holder);
    }
    if (!err)
        list_push_back(&waits, &w->node);
    mutex_unlock(&waits_lock);
    return err;
}

static void wait_end(struct lock_wait *w)
{
    mutex_lock(&waits_lock);
    list_remove(&w->node);
    mutex_unlock(&waits_lock);
}

// Sleeps until something was unlocked, with the list's mutex dropped.
static int wait_for(struct file_locks *fl, const struct lock_range *r,
                    const void *owner, const void *holder)
{
    mutex_assert_held(&fl->lock);
    struct lock_wait w = { .owner = owner,
                           .holder = holder,
                           .locks = fl,
                           .generation = fl->generation };
    int err = r->record ? wait_begin(&w) : 0;
    if (err)
        return err;
    mutex_unlock(&fl->lock);
    if (wait_event(&fl->wait, READ_ONCE(fl->generation) != w.generation,
                   WAIT_INTERRUPTIBLE, WAIT_FOREVER))
        err = -ERESTARTSYS;
    if (r->record)
        wait_end(&w);
    mutex_lock(&fl->lock);
    return err;
}

static int wait_until_free(struct file_locks *fl, const void *owner,
                           const struct lock_range *r, bool wait)
{
    mutex_assert_held(&fl->lock);
    const struct file_lock *l;
    int err = 0;
    while (!err && r->type != LOCK_NONE && (l = find_conflict(fl, owner, r)))
        err = wait ? wait_for(fl, r, owner, l->owner) : -EAGAIN;
    return err;
}

// --- the calls --------------------------------------------------------------

int locks_set(struct vnode *v, const void *owner, const struct lock_range *r,
              bool wait)
{
    assert(v && owner);
    struct file_locks *fl = locks_make(v);
    bool adds = r->type != LOCK_NONE;
    struct file_lock *new = adds ? lock_new() : NULL;
    struct file_lock *spare = splits(r) ? lock_new() : NULL;
    int err = -ENOLCK;
    if (fl && (new || !adds) && (spare || !splits(r))) {
        mutex_lock(&fl->lock);
        err = wait_until_free(fl, owner, r, wait);
        if (!err) {
            cut_out(fl, owner, r, &spare);
            if (adds) {
                add(fl, new, owner, r);
                new = NULL;
            }
            wake_waiters(fl);
        }
        mutex_unlock(&fl->lock);
    }
    if (new)
        lock_free(new);
    if (spare)
        lock_free(spare);
    return err;
}

void locks_test(struct vnode *v, const void *owner, struct lock_range *r)
{
    struct file_locks *fl = locks_of(v);
    const struct file_lock *l = NULL;
    if (fl) {
        mutex_lock(&fl->lock);
        l = find_conflict(fl, owner, r);
        if (l)
            *r = l->range;
        mutex_unlock(&fl->lock);
    }
    if (!l)
        r->type = LOCK_NONE;
}

void locks_drop(struct vnode *v, const void *owner)
{
    struct file_lock *l, *next;
    bool dropped = false;
    struct file_locks *fl = locks_of(v);
    if (likely(!fl))
        return;
    mutex_lock(&fl->lock);
    list_for_each_safe(l, next, &fl->held, node) {
        if (l->owner == owner) {
            remove(l);
            dropped = true;
        }
    }
    if (dropped)
        wake_waiters(fl);
    mutex_unlock(&fl->lock);
}
