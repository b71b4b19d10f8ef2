// Advisory locks, kept in one list: there are few at a time.
//
// `locks_lock` (a mutex) guards the list; `locks_held` counts it, so that
// closing files costs nothing while there are no locks. Each lock references
// its vnode. `locks_freed` changes whenever something may have become free:
// that is what waiters watch.
#include "kernel/fs/locks.h"
#include "kernel/init/log.h"

#include "kernel/errno.h"
#include "kernel/mm/heap.h"

struct file_lock {
    struct list node;
    struct vnode *vnode;
    const void *owner;
    struct lock_range range;
};

SLAB_CACHE(lock_cache, struct file_lock);
static struct mutex locks_lock = MUTEX_INIT(locks_lock, "file locks");
static struct list locks = LIST_INIT(locks);
static struct waitq locks_wait = WAITQ_INIT(locks_wait, "file lock");
static u32 locks_held, locks_freed;

static bool overlaps(const struct file_lock *l, const struct vnode *v,
                     const struct lock_range *r)
{
    return l->vnode == v && l->range.record == r->record &&
           l->range.start <= r->end && r->start <= l->range.end;
}

static struct file_lock *find_conflict(const struct vnode *v, const void *owner,
                                       const struct lock_range *r)
{
    mutex_assert_held(&locks_lock);
    struct file_lock *l;
    list_for_each(l, &locks, node) {
        if (overlaps(l, v, r) && l->owner != owner &&
            (l->range.type == LOCK_WRITE || r->type == LOCK_WRITE))
            return l;
    }
    return NULL;
}

static void add(struct file_lock *l, struct vnode *v, const void *owner,
                const struct lock_range *r)
{
    mutex_assert_held(&locks_lock);
    vnode_ref(v);
    l->vnode = v;
    l->owner = owner;
    l->range = *r;
    list_push_back(&locks, &l->node);
    ADD_ONCE(locks_held, 1);
}

static void remove(struct file_lock *l)
{
    mutex_assert_held(&locks_lock);
    list_remove(&l->node);
    ADD_ONCE(locks_held, -1u);
    vnode_unref(l->vnode);
    slab_free(&lock_cache, l);
}

static void wake_waiters(void)
{
    mutex_assert_held(&locks_lock);
    WRITE_ONCE(locks_freed, locks_freed + 1);
    waitq_wake_all(&locks_wait);
}

// Takes the range out of the owner's locks. The one lock that may have to be
// split takes *spare.
static void cut_out(struct vnode *v, const void *owner,
                    const struct lock_range *r, struct file_lock **spare)
{
    mutex_assert_held(&locks_lock);
    struct file_lock *l, *next;
    list_for_each_safe(l, next, &locks, node) {
        if (!overlaps(l, v, r) || l->owner != owner)
            continue;
        bool left = l->range.start < r->start;
        bool right = l->range.end > r->end;
        if (left && right) {
            struct lock_range rest = l->range;
            rest.start = r->end + 1;
            add(*spare, v, owner, &rest);
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

// Under locks_lock, which it drops while it waits.
static int wait_until_free(struct vnode *v, const void *owner,
                           const struct lock_range *r, bool wait)
{
    mutex_assert_held(&locks_lock);
    while (r->type != LOCK_NONE && find_conflict(v, owner, r)) {
        if (!wait)
            return -EAGAIN;
        u32 before = locks_freed;
        mutex_unlock(&locks_lock);
        int err = wait_event(&locks_wait, READ_ONCE(locks_freed) != before,
                             WAIT_INTERRUPTIBLE, WAIT_FOREVER);
        mutex_lock(&locks_lock);
        if (err)
            return -ERESTARTSYS;
    }
    return 0;
}

int locks_set(struct vnode *v, const void *owner, const struct lock_range *r,
              bool wait)
{
    assert(v && owner);
    struct file_lock *new = slab_alloc(&lock_cache);
    struct file_lock *spare = slab_alloc(&lock_cache);
    int err = new &&spare ? 0 : -ENOMEM;
    mutex_lock(&locks_lock);
    if (!err)
        err = wait_until_free(v, owner, r, wait);
    if (!err) {
        cut_out(v, owner, r, &spare);
        if (r->type != LOCK_NONE) {
            add(new, v, owner, r);
            new = NULL;
        }
        wake_waiters();
    }
    mutex_unlock(&locks_lock);
    if (new)
        slab_free(&lock_cache, new);
    if (spare)
        slab_free(&lock_cache, spare);
    return err;
}

void locks_test(struct vnode *v, const void *owner, struct lock_range *r)
{
    mutex_lock(&locks_lock);
    struct file_lock *l = find_conflict(v, owner, r);
    if (l)
        *r = l->range;
    else
        r->type = LOCK_NONE;
    mutex_unlock(&locks_lock);
}

void locks_drop(struct vnode *v, const void *owner)
{
    struct file_lock *l, *next;
    bool dropped = false;
    // The owner's own locks were counted before it came here.
    if (likely(!READ_ONCE(locks_held)))
        return;
    mutex_lock(&locks_lock);
    list_for_each_safe(l, next, &locks, node) {
        if (l->owner == owner && (!v || l->vnode == v)) {
            remove(l);
            dropped = true;
        }
    }
    if (dropped)
        wake_waiters();
    mutex_unlock(&locks_lock);
}
