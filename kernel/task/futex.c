// Waiters are in the lists of a hash table. A waiter is on its sleeper's stack:
// it is only accessed with its bucket's lock held, and the sleeper takes that
// lock before it returns.

#include "kernel/task/futex.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/aspace.h"
#include "kernel/task/task.h"
#include "kernel/trace/point.h"

#define BUCKETS 256u

struct key {
    const void *object; // address space, vnode or shared memory
    u32 offset;
};

struct bucket {
    struct spinlock lock;
    struct list waiters;
};

struct futex_waiter {
    struct list node;
    struct bucket *bucket; // changed by requeue, with both locks held
    struct key key;
    struct thread *thread;
    u32 bitset;
    bool woken;
};

static struct bucket buckets[BUCKETS] = {
    [0 ... BUCKETS - 1] = { .lock = SPINLOCK_INIT("futex") },
};

static struct bucket *bucket_of(const struct key *k)
{
    u32 hash = ((u32)k->object >> 4) * 0x9e3779b1u ^ (k->offset >> 2);
    hash *= 0x9e3779b1u;
    struct bucket *b = &buckets[hash >> 24];
    // The list is initialized at the first use.
    u32 flags = spin_lock_irq(&b->lock);
    if (!b->waiters.next) {
        list_init(&b->waiters);
    }
    spin_unlock_irq(&b->lock, flags);
    return b;
}

// The key of a word in shared memory is its vnode or shared pages, and the
// offset there.
static int make_key(u32 addr, bool private, struct key *out)
{
    if (addr & 3)
        return -EINVAL;
    if (addr >= USER_END)
        return -EFAULT;
    struct aspace *as = current_task()->aspace;
    assert_checked(as);
    *out = (struct key){ as, addr };
    return private ? 0
                   : aspace_shared_object(as, addr, &out->object, &out->offset);
}

static bool same(const struct key *a, const struct key *b)
{
    return a->object == b->object && a->offset == b->offset;
}

static u32 enqueue(struct futex_waiter *w, struct bucket *b)
{
    assert_checked(w->thread == current && !w->woken);
    u32 flags = spin_lock_irq(&b->lock);
    w->bucket = b;
    list_push_back(&b->waiters, &w->node);
    spin_unlock_irq(&b->lock, flags);
    return flags;
}

// Removes the waiter from its bucket, which requeue may change concurrently.
// Returns whether it was woken.
static bool dequeue(struct futex_waiter *w)
{
    for (;;) {
        struct bucket *b = READ_ONCE(w->bucket);
        u32 flags = spin_lock_irq(&b->lock);
        bool here = w->bucket == b;
        if (here)
            list_remove(&w->node);
        spin_unlock_irq(&b->lock, flags);
        if (here)
            return w->woken;
    }
}

static int sleep_on(struct futex_waiter *w, u64 deadline)
{
    int err = 0;
    WRITE_ONCE(current->wait_on, "futex");
    for (;;) {
        wait_prepare(WAIT_INTERRUPTIBLE);
        if (READ_ONCE(w->woken) || err)
            break;
        err = wait_sleep(WAIT_INTERRUPTIBLE, deadline);
    }
    wait_finish();
    return err;
}

int futex_wait(u32 addr, bool private, u32 value, u64 deadline, u32 bitset)
{
    struct futex_waiter w = { .thread = current, .bitset = bitset };
    if (!bitset)
        return -EINVAL;
    int err = make_key(addr, private, &w.key);
    if (err)
        return err;
    // The waiter is queued before the word is read: a wake-up after the read
    // finds it.
    enqueue(&w, bucket_of(&w.key));
    u32 now;
    if (user_load_u32(addr, &now))
        err = -EFAULT;
    else if (now != value)
        err = -EAGAIN;
    else
        err = sleep_on(&w, deadline);
    return dequeue(&w) ? 0 : err;
}

static void wake(struct futex_waiter *w)
{
    list_remove(&w->node);
    WRITE_ONCE(w->woken, true);
    TRACE(futex_wake, .thread = w->thread->tid, .object = (u32)w->key.object,
          .offset = w->key.offset);
    thread_wake(w->thread);
}

static int wake_locked(struct bucket *b, const struct key *key, u32 count,
                       u32 bitset)
{
    spin_assert_held(&b->lock);
    struct futex_waiter *w, *next;
    int woken = 0;
    list_for_each_safe(w, next, &b->waiters, node) {
        if ((u32)woken == count)
            break;
        if (!same(&w->key, key) || !(w->bitset & bitset))
            continue;
        wake(w);
        woken++;
    }
    return woken;
}

int futex_wake(u32 addr, bool private, u32 count, u32 bitset)
{
    struct key key;
    if (!bitset)
        return -EINVAL;
    int err = make_key(addr, private, &key);
    if (err)
        return err;
    struct bucket *b = bucket_of(&key);
    u32 flags = spin_lock_irq(&b->lock);
    int woken = wake_locked(b, &key, count, bitset);
    spin_unlock_irq(&b->lock, flags);
    return woken;
}

void futex_wake_user(u32 addr, u32 count)
{
    futex_wake(addr, false, count, FUTEX_ANY);
}

int futex_requeue(u32 addr, u32 to, bool private, u32 wake_count, u32 move,
                  const u32 *expect)
{
    struct key key, to_key;
    int err = make_key(addr, private, &key);
    if (!err)
        err = make_key(to, private, &to_key);
    if (err)
        return err;
    u32 now;
    if (expect && user_load_u32(addr, &now))
        return -EFAULT;
    if (expect && now != *expect)
        return -EAGAIN;
    struct bucket *from = bucket_of(&key), *target = bucket_of(&to_key);
    struct bucket *first = from < target ? from : target;
    struct bucket *second = from < target ? target : from;
    u32 flags = spin_lock_irq(&first->lock);
    if (second != first)
        spin_lock_nested(&second->lock);
    int done = wake_locked(from, &key, wake_count, FUTEX_ANY);
    struct futex_waiter *w, *next;
    list_for_each_safe(w, next, &from->waiters, node) {
        if (!move)
            break;
        if (!same(&w->key, &key))
            continue;
        list_remove(&w->node);
        w->key = to_key;
        WRITE_ONCE(w->bucket, target);
        list_push_back(&target->waiters, &w->node);
        move--;
        done++;
    }
    if (second != first)
        spin_unlock(&second->lock);
    spin_unlock_irq(&first->lock, flags);
    return done;
}
