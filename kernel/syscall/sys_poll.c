// poll, ppoll, select, pselect: user layouts around poll_files().
#include "kernel/base/log.h"
#include "kernel/fs/poll.h"
#include "kernel/mm/heap.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_types.h"
#include "lib/string.h"

#define SLOTS_SMALL 8u // polled without allocation

// A wait that was interrupted and restarted without a handler continues to the
// same deadline, which is recorded with -ERESTARTNOHAND. Nothing ready: 0.
static int wait_for_files(struct poll_slot *slots, u32 count, u64 deadline)
{
    struct thread *t = current;
    if (t->restart_deadline && deadline)
        deadline = t->restart_deadline;
    t->restart_deadline = 0;
    int ready = poll_files(slots, count, deadline);
    if (ready != -EINTR)
        return ready;
    t->restart_deadline = deadline;
    return -ERESTARTNOHAND;
}

// The deadline of a timeout; a timeout of 0 gives 0, which only checks.
static u64 deadline_or_poll(u64 timeout_ns)
{
    return timeout_ns ? deadline_after(timeout_ns) : 0;
}

// The optional timeout of the p-calls: relative, NULL is infinite.
static int timeout_from_user(u32 addr, bool wide, u64 *deadline)
{
    u64 ns;
    *deadline = WAIT_FOREVER;
    if (!addr)
        return 0;
    int err = time_from_user(addr, wide, &ns);
    if (!err)
        *deadline = deadline_or_poll(ns);
    return err;
}

// As on Linux, writes the remaining time back and ignores a fault.
static void timeout_to_user(u32 addr, bool wide, u64 deadline)
{
    if (!addr || deadline == WAIT_FOREVER)
        return;
    u64 now = clock_now_ns();
    int err = time_to_user(addr, wide, deadline > now ? deadline - now : 0);
    (void)err;
}

static int mask_from_user(u32 addr, u32 size)
{
    sigset_t mask;
    if (!addr)
        return 0;
    if (size != sizeof(mask))
        return -EINVAL;
    if (copy_from_user(&mask, addr, sizeof(mask)))
        return -EFAULT;
    signal_set_temporary_mask(mask);
    return 0;
}

// --- poll -------------------------------------------------------------------

struct pollfd {
    s32 fd;
    u16 events, revents;
};
_Static_assert(sizeof(struct pollfd) == 8, "struct pollfd of the ABI");

struct poll_call {
    struct pollfd fds_small[SLOTS_SMALL], *fds;
    struct poll_slot slots_small[SLOTS_SMALL], *slots;
    u32 count;
};

static void poll_put(struct poll_call *p)
{
    assert_checked(p->count <= FD_MAX);
    if (p->fds != p->fds_small)
        kfree(p->fds);
    if (p->slots != p->slots_small)
        kfree(p->slots);
}

static int poll_get(struct poll_call *p, u32 addr, u32 count)
{
    if (count > FD_MAX)
        return -EINVAL;
    p->count = count;
    p->fds = p->fds_small;
    p->slots = p->slots_small;
    if (count > SLOTS_SMALL) {
        p->fds = kmalloc(count * sizeof(*p->fds));
        p->slots = kmalloc(count * sizeof(*p->slots));
    }
    int err = -ENOMEM;
    if (p->fds && p->slots)
        err = copy_from_user(p->fds, addr, count * sizeof(*p->fds));
    if (err)
        poll_put(p);
    return err;
}

// Borrows the files; returns how many descriptors are bad (these have an
// event).
static u32 poll_open(struct poll_call *p)
{
    u32 bad = 0;
    for (u32 i = 0; i < p->count; i++) {
        struct poll_slot *s = &p->slots[i];
        s->ref = (struct fd_ref){ .file = NULL };
        s->events = p->fds[i].events | POLL_ALWAYS;
        s->found = 0;
        if (p->fds[i].fd < 0)
            continue;
        if (fd_borrow((u32)p->fds[i].fd, &s->ref)) {
            s->ref = (struct fd_ref){ .file = NULL };
            s->found = POLLNVAL;
            bad++;
        }
    }
    return bad;
}

static void slots_close(struct poll_slot *slots, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        if (slots[i].ref.file)
            fd_return(&slots[i].ref);
    }
}

static s32 poll_until(u32 addr, u32 count, u64 deadline)
{
    struct poll_call p;
    int err = poll_get(&p, addr, count);
    if (err)
        return err;
    u32 bad = poll_open(&p);
    int ready = wait_for_files(p.slots, count, bad ? 0 : deadline);
    slots_close(p.slots, count);
    if (ready >= 0) {
        for (u32 i = 0; i < count; i++)
            p.fds[i].revents = (u16)p.slots[i].found;
        ready += (int)bad;
        if (copy_to_user(addr, p.fds, count * sizeof(*p.fds)))
            ready = -EFAULT;
    }
    poll_put(&p);
    return ready;
}

s32 sys_poll(u32 files, u32 count, s32 timeout)
{
    s32 ms = (s32)timeout;
    return poll_until(files, count,
                      ms < 0 ? WAIT_FOREVER
                             : deadline_or_poll((u32)ms * NSEC_PER_MSEC));
}

static s32 poll_masked(u32 addr, u32 count, u32 timeout, bool wide, u32 mask,
                       u32 mask_size)
{
    u64 deadline;
    int err = timeout_from_user(timeout, wide, &deadline);
    if (!err)
        err = mask_from_user(mask, mask_size);
    if (err)
        return err;
    s32 ready = poll_until(addr, count, deadline);
    timeout_to_user(timeout, wide, deadline);
    return ready;
}

TIME_TWINS(ppoll, ppoll_time64,
           (u32 files, u32 count, u32 timeout, u32 mask, u32 mask_size),
           poll_masked(files, count, timeout, wide, mask, mask_size))

// --- select -----------------------------------------------------------------

#define SET_WORDS (FD_MAX / 32)
_Static_assert(FD_MAX % 32 == 0 && FD_MAX <= UINT16_MAX,
               "sets and their slots");
#define READ_EVENTS (POLLIN | POLLHUP | POLLERR)
#define WRITE_EVENTS (POLLOUT | POLLERR)
#define EXCEPT_EVENTS POLLPRI

enum { READ_SET, WRITE_SET, EXCEPT_SET, SETS };
static const u32 set_events[SETS] = { READ_EVENTS, WRITE_EVENTS,
                                      EXCEPT_EVENTS };

struct select_call {
    u32 addr[SETS]; // 0: not given
    u32 limit, words;
    u32 set[SETS][SET_WORDS];
    struct poll_slot *slots;
    u16 fd[FD_MAX]; // of each slot
    u32 count;
};

static int sets_from_user(struct select_call *s)
{
    for (u32 i = 0; i < SETS; i++) {
        memset(s->set[i], 0, s->words * sizeof(u32));
        if (s->addr[i] &&
            copy_from_user(s->set[i], s->addr[i], s->words * sizeof(u32)))
            return -EFAULT;
    }
    return 0;
}

static u32 events_of(const struct select_call *s, u32 fd)
{
    assert_checked(fd < FD_MAX);
    u32 events = 0;
    for (u32 i = 0; i < SETS; i++) {
        if (s->set[i][fd / 32] >> fd % 32 & 1)
            events |= set_events[i];
    }
    return events;
}

// Makes a slot for each descriptor in a set. -EBADF: one is not open.
static int select_open(struct select_call *s)
{
    for (u32 fd = 0; fd < s->limit; fd++) {
        u32 events = events_of(s, fd);
        if (!events)
            continue;
        struct poll_slot *slot = &s->slots[s->count];
        *slot = (struct poll_slot){ .events = events };
        int err = fd_borrow(fd, &slot->ref);
        if (err)
            return err;
        s->fd[s->count++] = (u16)fd;
    }
    return 0;
}

// Leaves the descriptors with events in the sets; returns the number of bits.
static int sets_to_user(struct select_call *s)
{
    assert_checked(s->count <= s->limit);
    u32 wanted[SETS][SET_WORDS];
    int bits = 0;
    memcpy(wanted, s->set, sizeof(wanted));
    memset(s->set, 0, sizeof(s->set));
    for (u32 i = 0; i < s->count; i++) {
        u32 word = s->fd[i] / 32, bit = 1u << s->fd[i] % 32;
        for (u32 set = 0; set < SETS; set++) {
            if ((wanted[set][word] & bit) &&
                (s->slots[i].found & set_events[set])) {
                s->set[set][word] |= bit;
                bits++;
            }
        }
    }
    for (u32 i = 0; i < SETS; i++) {
        if (s->addr[i] &&
            copy_to_user(s->addr[i], s->set[i], s->words * sizeof(u32)))
            return -EFAULT;
    }
    return bits;
}

static u32 count_bits(const struct select_call *s)
{
    u32 count = 0;
    for (u32 i = 0; i < s->words; i++)
        count += (u32)__builtin_popcount(
            s->set[READ_SET][i] | s->set[WRITE_SET][i] | s->set[EXCEPT_SET][i]);
    return count;
}

static int select_prepared(struct select_call *s, u64 deadline)
{
    int err = sets_from_user(s);
    if (err)
        return err;
    s->slots = kmalloc(MAX(count_bits(s), 1u) * sizeof(*s->slots));
    if (!s->slots)
        return -ENOMEM;
    err = select_open(s);
    if (!err)
        err = wait_for_files(s->slots, s->count, deadline);
    slots_close(s->slots, s->count);
    if (err >= 0)
        err = sets_to_user(s);
    kfree(s->slots);
    return err;
}

static s32 select_until(u32 limit, const u32 *addr, u64 deadline)
{
    if ((s32)limit < 0)
        return -EINVAL;
    struct select_call *s = kmalloc(sizeof(*s));
    if (!s)
        return -ENOMEM;
    memcpy(s->addr, addr, sizeof(s->addr));
    s->limit = MIN(limit, FD_MAX);
    s->words = DIV_ROUND_UP(s->limit, 32);
    s->count = 0;
    int bits = select_prepared(s, deadline);
    kfree(s);
    return bits;
}

s32 sys_newselect(u32 limit, u32 read_set, u32 write_set, u32 except_set,
                  u32 timeout)
{
    const u32 sets[SETS] = { read_set, write_set, except_set };
    struct timeval32 t;
    u64 deadline = WAIT_FOREVER;
    if (timeout) {
        if (copy_from_user(&t, timeout, sizeof(t)))
            return -EFAULT;
        if (t.sec < 0 || t.usec < 0)
            return -EINVAL;
        deadline = deadline_or_poll((u64)(u32)t.sec * NSEC_PER_SEC +
                                    (u64)(u32)t.usec * NSEC_PER_USEC);
    }
    s32 bits = select_until(limit, sets, deadline);
    if (timeout) {
        u64 now = clock_now_ns();
        u64 left = deadline > now ? (deadline - now) / NSEC_PER_USEC : 0;
        t.sec = (s32)(left / 1000000);
        t.usec = (s32)(left % 1000000);
        if (copy_to_user(timeout, &t, sizeof(t)))
            return bits < 0 ? bits : -EFAULT;
    }
    return bits;
}

// The oldest form: one pointer to the five arguments.
s32 sys_select(u32 arguments)
{
    u32 args[5];
    if (copy_from_user(args, arguments, sizeof(args)))
        return -EFAULT;
    return sys_newselect(args[0], args[1], args[2], args[3], args[4]);
}

static s32 select_masked(u32 limit, const u32 *sets, u32 timeout, bool wide,
                         u32 mask)
{
    u32 m[2] = { 0, 0 }; // the mask's address and size
    u64 deadline;
    if (mask && copy_from_user(m, mask, sizeof(m)))
        return -EFAULT;
    int err = timeout_from_user(timeout, wide, &deadline);
    if (!err)
        err = mask_from_user(m[0], m[1]);
    if (err)
        return err;
    s32 bits = select_until(limit, sets, deadline);
    timeout_to_user(timeout, wide, deadline);
    return bits;
}

TIME_TWINS(pselect6, pselect6_time64,
           (u32 limit, u32 read_set, u32 write_set, u32 except_set, u32 timeout,
            u32 mask),
           select_masked(limit,
                         (const u32[]){ read_set, write_set, except_set },
                         timeout, wide, mask))
