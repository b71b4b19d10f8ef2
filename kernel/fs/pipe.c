// Pipes: a ring of pages between readers and writers.
//
// `lock` (a mutex, so that user memory may fault under it) guards the ring and
// the counts of open ends. Sleepers and poll() read their conditions without
// it: each is one aligned word (`used`, `readers`, `writers`), and a thread
// that changes one wakes the queue afterwards. `fifos_lock` guards the link
// between a vnode and its pipe.
//
// Pages are allocated with their first byte and kept; an empty ring restarts in
// its first page, so small messages use only that one.
#include "kernel/fs/pipe.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/file.h"
#include "kernel/fs/poll.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/task/signal.h"
#include "kernel/task/task.h"
#include "kernel/task/users.h"
#include "kernel/trace/point.h"
#include "lib/string.h"

#define PIPE_PAGES (PIPE_SIZE / PAGE_SIZE)

struct pipe {
    struct mutex lock;
    u32 start, used;      // the ring's first byte, and the number of bytes
    u32 readers, writers; // open ends
    u32 readers_seen, writers_seen; // total ever opened, for fifo_open
    u32 users; // open files and opens in progress: the last frees it
    struct waitq read_wait, write_wait;
    struct payer *payer;
    u8 *page[PIPE_PAGES];
};
#define PIPE_CHARGE (sizeof(struct pipe) + PIPE_SIZE)

SLAB_CACHE(pipe_cache, struct pipe);
static struct mutex fifos_lock = MUTEX_INIT(fifos_lock, "fifos");

// NULL: no memory, or the user's limit is reached.
static struct pipe *pipe_new(void)
{
    struct payer *payer;
    if (!charge_current(PIPE_CHARGE, &payer))
        return NULL;
    struct pipe *p = slab_alloc(&pipe_cache);
    if (!p) {
        user_discharge(payer, PIPE_CHARGE);
        return NULL;
    }
    memset(p, 0, sizeof(*p));
    p->payer = payer;
    mutex_init(&p->lock, "pipe");
    waitq_init(&p->read_wait, "pipe read");
    waitq_init(&p->write_wait, "pipe write");
    return p;
}

static void pipe_free(struct pipe *p)
{
    for (u32 i = 0; i < PIPE_PAGES; i++) {
        if (p->page[i])
            page_free(p->page[i]);
    }
    user_discharge(p->payer, PIPE_CHARGE);
    slab_free(&pipe_cache, p);
}

static u32 room(const struct pipe *p)
{
    return PIPE_SIZE - READ_ONCE(p->used);
}

static void wake(struct pipe *p, struct waitq *q)
{
    TRACE_IF(pipe_wake, !waitq_empty(q), .pipe = (u32)p,
             .bytes = READ_ONCE(p->used), .writers = q == &p->write_wait);
    waitq_wake_all(q);
}

static bool readable(const struct pipe *p)
{
    return READ_ONCE(p->used) || !READ_ONCE(p->writers);
}

// Moves the available bytes, up to io->left.
static int take_bytes(struct pipe *p, struct io *io)
{
    mutex_assert_held(&p->lock);
    assert_checked(p->used <= PIPE_SIZE && p->start < PIPE_SIZE);
    u32 used = p->used;
    int err = 0;
    while (io->left && used && !err) {
        u32 offset = p->start % PAGE_SIZE;
        u32 n = MIN(MIN(PAGE_SIZE - offset, used), io->left);
        u32 before = io->left;
        err = io_to(io, p->page[p->start / PAGE_SIZE] + offset, n);
        u32 done = before - io->left;
        p->start = (p->start + done) % PIPE_SIZE;
        used -= done;
    }
    if (!used)
        p->start = 0;
    WRITE_ONCE(p->used, used);
    return err;
}

static u8 *page_at(struct pipe *p, u32 at)
{
    mutex_assert_held(&p->lock);
    assert_checked(at < PIPE_SIZE);
    u8 **page = &p->page[at / PAGE_SIZE];
    if (!*page) {
        struct frame *f = frame_alloc(0, FRAME_LOW, FRAME_BUFFER);
        *page = f ? frame_va(f) : NULL;
    }
    return *page;
}

// Moves as many bytes as there is room for, up to io->left.
static int put_bytes(struct pipe *p, struct io *io)
{
    mutex_assert_held(&p->lock);
    assert_checked(p->used <= PIPE_SIZE && p->start < PIPE_SIZE);
    u32 used = p->used;
    int err = 0;
    while (io->left && used < PIPE_SIZE && !err) {
        u32 at = (p->start + used) % PIPE_SIZE;
        u32 offset = at % PAGE_SIZE;
        u32 n = MIN(MIN(PAGE_SIZE - offset, PIPE_SIZE - used), io->left);
        u32 before = io->left;
        u8 *page = page_at(p, at);
        err = page ? io_from(io, page + offset, n) : -ENOMEM;
        used += before - io->left;
    }
    WRITE_ONCE(p->used, used);
    return err;
}

static int pipe_read(struct file *f, struct io *io, u64 *pos UNUSED)
{
    struct pipe *p = f->data;
    u32 wanted = io->left;
    if (!wanted)
        return 0;
    for (;;) {
        if (!readable(p)) {
            if (READ_ONCE(f->flags) & O_NONBLOCK)
                return -EAGAIN;
            if (wait_event(&p->read_wait, readable(p), WAIT_INTERRUPTIBLE,
                           WAIT_FOREVER))
                return -ERESTARTSYS;
        }
        mutex_lock(&p->lock);
        u32 used = p->used;
        bool ended = !p->writers;
        int err = used ? take_bytes(p, io) : 0;
        mutex_unlock(&p->lock);
        if (used) {
            // Writers sleep only when there is less room than one atomic write.
            if (PIPE_SIZE - used < PIPE_ATOMIC)
                wake(p, &p->write_wait);
            return io->left == wanted ? err : (int)(wanted - io->left);
        }
        if (ended)
            return 0;
    }
}

static int broken_pipe(void)
{
    signal_send_thread(current, SIGPIPE, NULL);
    return -EPIPE;
}

static bool writable(const struct pipe *p, u32 needed)
{
    return room(p) >= needed || !READ_ONCE(p->readers);
}

static int pipe_write(struct file *f, struct io *io, u64 *pos UNUSED)
{
    struct pipe *p = f->data;
    u32 wanted = io->left;
    u32 needed = wanted <= PIPE_ATOMIC ? wanted : 1;
    int err = 0;
    while (io->left && !err) {
        mutex_lock(&p->lock);
        bool broken = !p->readers;
        u32 before = p->used;
        bool fits = PIPE_SIZE - before >= needed;
        if (!broken && fits)
            err = put_bytes(p, io);
        bool began = !before && p->used;
        mutex_unlock(&p->lock);
        if (began)
            wake(p, &p->read_wait);
        if (broken)
            err = broken_pipe();
        else if (!err && io->left && (READ_ONCE(f->flags) & O_NONBLOCK))
            err = -EAGAIN;
        else if (!err && io->left &&
                 wait_event(&p->write_wait, writable(p, needed),
                            WAIT_INTERRUPTIBLE, WAIT_FOREVER))
            err = -ERESTARTSYS;
    }
    return io->left == wanted ? err : (int)(wanted - io->left);
}

static u32 pipe_poll(struct file *f, struct poll_wait *pw)
{
    struct pipe *p = f->data;
    u32 events = 0;
    if ((READ_ONCE(f->flags) & O_ACCMODE) != O_WRONLY) {
        poll_register(pw, &p->read_wait);
        if (READ_ONCE(p->used))
            events |= POLLIN;
        if (!READ_ONCE(p->writers) && READ_ONCE(p->writers_seen))
            events |= POLLHUP;
    }
    if ((READ_ONCE(f->flags) & O_ACCMODE) != O_RDONLY) {
        poll_register(pw, &p->write_wait);
        if (room(p) >= PIPE_ATOMIC)
            events |= POLLOUT;
        if (!READ_ONCE(p->readers))
            events |= POLLERR;
    }
    return events;
}

#define FIONREAD 0x541b

static int pipe_ioctl(struct file *f, u32 cmd, u32 arg)
{
    struct pipe *p = f->data;
    if (cmd != FIONREAD)
        return -ENOTTY;
    mutex_lock(&p->lock);
    u32 used = p->used;
    mutex_unlock(&p->lock);
    return user_store_u32(arg, used);
}

// --- opening and closing ----------------------------------------------------

// True if the other side is open already.
static bool add_ends(struct pipe *p, u32 flags)
{
    bool reads = (flags & O_ACCMODE) == O_RDONLY;
    mutex_lock(&p->lock);
    bool met = reads ? p->writers : p->readers;
    if ((flags & O_ACCMODE) != O_WRONLY) {
        ADD_ONCE(p->readers, 1);
        ADD_ONCE(p->readers_seen, 1);
    }
    if ((flags & O_ACCMODE) != O_RDONLY) {
        ADD_ONCE(p->writers, 1);
        ADD_ONCE(p->writers_seen, 1);
    }
    mutex_unlock(&p->lock);
    wake(p, &p->read_wait);
    wake(p, &p->write_wait);
    return met;
}

static void drop_ends(struct pipe *p, u32 flags)
{
    mutex_lock(&p->lock);
    if ((flags & O_ACCMODE) != O_WRONLY)
        ADD_ONCE(p->readers, -1u);
    if ((flags & O_ACCMODE) != O_RDONLY)
        ADD_ONCE(p->writers, -1u);
    mutex_unlock(&p->lock);
    wake(p, &p->read_wait);
    wake(p, &p->write_wait);
}

// Drops one user; the last one detaches the pipe from the vnode and frees it.
static void drop_user(struct pipe *p, struct vnode *v)
{
    mutex_lock(&fifos_lock);
    bool last = --p->users == 0;
    if (last && v)
        v->data = NULL;
    mutex_unlock(&fifos_lock);
    if (last)
        pipe_free(p);
}

static void pipe_release(struct file *f)
{
    struct pipe *p = f->data;
    drop_ends(p, READ_ONCE(f->flags));
    drop_user(p, f->vnode);
}

static const struct file_ops pipe_ops = {
    .read = pipe_read,
    .write = pipe_write,
    .poll = pipe_poll,
    .ioctl = pipe_ioctl,
    .release = pipe_release,
};

int pipe_create(u32 flags, struct file **read_end, struct file **write_end)
{
    struct pipe *p = pipe_new();
    struct file *r = file_alloc(&pipe_ops, O_RDONLY | flags);
    struct file *w = file_alloc(&pipe_ops, O_WRONLY | flags);
    if (!p || !r || !w) {
        // A file without a pipe has nothing to release.
        if (r)
            file_discard(r);
        if (w)
            file_discard(w);
        if (!p)
            return -ENFILE; // as Linux returns in either case
        pipe_free(p);
        return -ENOMEM;
    }
    p->users = 2;
    p->readers = p->readers_seen = 1;
    p->writers = p->writers_seen = 1;
    r->data = w->data = p;
    *read_end = r;
    *write_end = w;
    return 0;
}

// The vnode's pipe, created at the first open; its user count is raised.
static struct pipe *fifo_pipe(struct vnode *v)
{
    mutex_lock(&fifos_lock);
    if (!v->data)
        v->data = pipe_new();
    struct pipe *p = v->data;
    if (p)
        p->users++;
    mutex_unlock(&fifos_lock);
    return p;
}

// Adds an end and waits until the other side is or was open: a peer that waited
// for this side may have closed again before this thread runs.
static int add_and_wait_for_peer(struct pipe *p, u32 flags)
{
    bool reads = (flags & O_ACCMODE) == O_RDONLY;
    u32 *seen = reads ? &p->writers_seen : &p->readers_seen;
    u32 before = READ_ONCE(*seen);
    if (add_ends(p, flags) || (flags & O_ACCMODE) == O_RDWR)
        return 0;
    if (flags & O_NONBLOCK)
        return reads ? 0 : -ENXIO;
    int err = wait_event(reads ? &p->read_wait : &p->write_wait,
                         READ_ONCE(*seen) != before, WAIT_INTERRUPTIBLE,
                         WAIT_FOREVER);
    return err ? -ERESTARTSYS : 0;
}

int fifo_open(struct vnode *v, struct file *f)
{
    struct pipe *p = fifo_pipe(v);
    if (!p)
        return -ENOMEM;
    int err = add_and_wait_for_peer(p, READ_ONCE(f->flags));
    if (err) {
        drop_ends(p, READ_ONCE(f->flags));
        drop_user(p, v);
        return err;
    }
    f->ops = &pipe_ops;
    f->data = p;
    return 0;
}

bool pipe_is(const struct file *f)
{
    return f->ops == &pipe_ops;
}
