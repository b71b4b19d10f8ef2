// Sockets as files; see socket.h. The state beside udp.c's is single words.
#include "kernel/net/socket.h"

#include "arch/clock.h"
#include "kernel/base/log.h"
#include "kernel/fs/poll.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/thread.h"
#include "kernel/task/signal.h"

#define FIONREAD 0x541b
#define RETRY_NS NSEC_PER_MSEC // while the card's ring is full

struct socket {
    struct udp_socket *udp;
    u64 timeout;
    bool no_receiving, no_sending;
};

SLAB_CACHE(socket_file_cache, struct socket);

static bool readable(const struct socket *s)
{
    return udp_socket_has_datagram(s->udp) || READ_ONCE(s->no_receiving);
}

// NULL and 0: no more are received.
static int take(struct socket *s, bool nonblocking, struct datagram **out)
{
    u64 limit = s->timeout;
    if (limit != WAIT_FOREVER)
        limit += clock_now_ns();
    for (;;) {
        *out = udp_socket_take(s->udp);
        if (*out || READ_ONCE(s->no_receiving))
            return 0;
        if (nonblocking)
            return -EAGAIN;
        int err = wait_event(udp_socket_waitq(s->udp), readable(s),
                             WAIT_INTERRUPTIBLE, limit);
        if (err)
            return err == -ETIMEDOUT            ? -EAGAIN
                   : s->timeout == WAIT_FOREVER ? -ERESTARTSYS
                                                : -EINTR;
    }
}

int socket_receive(struct file *f, struct io *io, struct transfer_mode mode,
                   struct net_address *from)
{
    struct socket *s = f->data;
    struct datagram *d;
    int err = take(s, mode.nonblocking, &d);
    if (err || !d)
        return err;
    *from = d->from;
    int bytes = (int)d->bytes;
    err = io_to(io, d->data, MIN(d->bytes, io->left));
    if (mode.peek)
        udp_socket_put_back(s->udp, d);
    else
        kfree(d);
    return err ? err : bytes;
}

static int send_bytes(struct socket *s, const void *data, u32 bytes,
                      struct transfer_mode mode, const struct net_address *to)
{
    for (;;) {
        int err = udp_socket_send(s->udp, to, data, bytes);
        if (err != -EAGAIN || mode.nonblocking)
            return err ? err : (int)bytes;
        if (thread_sleep_until(clock_now_ns() + RETRY_NS, WAIT_INTERRUPTIBLE))
            return -ERESTARTSYS;
    }
}

int socket_send(struct file *f, struct io *io, struct transfer_mode mode,
                const struct net_address *to)
{
    struct socket *s = f->data;
    u32 bytes = io->left;
    if (READ_ONCE(s->no_sending))
        return -EPIPE;
    if (bytes > UDP_BYTES_MAX)
        return -EMSGSIZE;
    void *data = kmalloc(MAX(bytes, 1u));
    if (!data)
        return -ENOBUFS;
    int done = io_from(io, data, bytes);
    if (!done)
        done = send_bytes(s, data, bytes, mode, to);
    kfree(data);
    return done;
}

// --- the file

static struct transfer_mode mode_of(const struct file *f)
{
    return (struct transfer_mode){ READ_ONCE(f->flags) & O_NONBLOCK, false };
}

static int socket_read(struct file *f, struct io *io, u64 *pos UNUSED)
{
    struct net_address from;
    u32 room = io->left;
    int done = socket_receive(f, io, mode_of(f), &from);
    return done < 0 ? done : (int)MIN((u32)done, room);
}

static int socket_write(struct file *f, struct io *io, u64 *pos UNUSED)
{
    int done = socket_send(f, io, mode_of(f), NULL);
    if (done == -EPIPE)
        signal_send_thread(current, SIGPIPE, NULL);
    return done;
}

// It can always be written to: that the card's ring is full lasts microseconds.
static u32 socket_poll(struct file *f, struct poll_wait *pw)
{
    struct socket *s = f->data;
    poll_register(pw, udp_socket_waitq(s->udp));
    return POLLOUT | POLLWRNORM | (readable(s) ? POLLIN | POLLRDNORM : 0u);
}

static int socket_ioctl(struct file *f, u32 cmd, u32 arg)
{
    struct socket *s = f->data;
    if (cmd != FIONREAD)
        return -ENOTTY;
    struct datagram *d = udp_socket_take(s->udp);
    u32 bytes = d ? d->bytes : 0;
    if (d)
        udp_socket_put_back(s->udp, d);
    return user_store_u32(arg, bytes);
}

static void socket_release(struct file *f)
{
    struct socket *s = f->data;
    udp_socket_close(s->udp);
    slab_free(&socket_file_cache, s);
}

static const struct file_ops socket_ops = {
    .read = socket_read,
    .write = socket_write,
    .poll = socket_poll,
    .ioctl = socket_ioctl,
    .release = socket_release,
    .socket = true,
};

int socket_create(u32 flags, struct file **out)
{
    struct socket *s = slab_alloc(&socket_file_cache);
    struct udp_socket *udp = s ? udp_socket_open() : NULL;
    struct file *f = udp ? file_alloc(&socket_ops, O_RDWR | flags) : NULL;
    if (f) {
        *s = (struct socket){ .udp = udp, .timeout = WAIT_FOREVER };
        f->data = s;
        *out = f;
        return 0;
    }
    if (udp)
        udp_socket_close(udp);
    if (s)
        slab_free(&socket_file_cache, s);
    return -ENOBUFS;
}

struct udp_socket *socket_of(const struct file *f)
{
    return f->ops == &socket_ops ? ((struct socket *)f->data)->udp : NULL;
}

void socket_set_timeout(struct file *f, u64 ns)
{
    ((struct socket *)f->data)->timeout = ns;
}

int socket_shut_down(struct file *f, bool receiving, bool sending)
{
    struct socket *s = f->data;
    struct net_address peer;
    if (!udp_socket_peer(s->udp, &peer))
        return -ENOTCONN;
    if (receiving)
        WRITE_ONCE(s->no_receiving, true);
    if (sending)
        WRITE_ONCE(s->no_sending, true);
    waitq_wake_all(udp_socket_waitq(s->udp));
    return 0;
}
