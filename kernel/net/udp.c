// UDP sockets over lwIP's; see udp.h. net_lock guards all.
//
// A datagram is copied from lwIP's buffer, which is as large as a frame, into
// memory of its size. A queue that is full loses what comes then: the program
// reads too slowly.
#include "kernel/net/udp.h"

#include "kernel/base/errno.h"
#include "kernel/mm/heap.h"
#include "kernel/net/net.h"
#include "kernel/task/task.h"
#include "kernel/task/users.h"
#include "lib/string.h"

#include <lwip/ip4.h>
#include <lwip/udp.h>

struct udp_socket {
    struct udp_pcb *pcb;
    struct payer *payer;
    struct list queue; // of datagrams
    u32 queued;        // bytes of memory
    u32 count;         // of datagrams; read without the lock, too
    struct waitq wait;
};
#define CHARGE \
    (sizeof(struct udp_socket) + sizeof(struct udp_pcb) + UDP_QUEUE_BYTES)
#define HEADERS (IP_HLEN + UDP_HLEN)

static u64 lost;

SLAB_CACHE(socket_cache, struct udp_socket);

// kmalloc's sizes are powers of two.
static u32 memory_of(u32 bytes)
{
    u32 needed = bytes + sizeof(struct datagram), size = 32;
    while (size < needed)
        size *= 2;
    return size;
}

static struct datagram *pop(struct udp_socket *s)
{
    struct datagram *d = list_first(&s->queue, struct datagram, node);
    list_remove(&d->node);
    return d;
}

static void enqueue(struct udp_socket *s, struct pbuf *p,
                    const struct net_address *from)
{
    u32 size = memory_of(p->tot_len);
    struct datagram *d = NULL;
    if (s->queued + size <= UDP_QUEUE_BYTES)
        d = kmalloc(sizeof(*d) + p->tot_len);
    if (!d) {
        lost++;
        return;
    }
    d->from = *from;
    d->bytes = pbuf_copy_partial(p, d->data, p->tot_len, 0);
    list_push_back(&s->queue, &d->node);
    s->queued += size;
    WRITE_ONCE(s->count, s->count + 1);
    waitq_wake_all(&s->wait);
}

static void received(void *arg, struct udp_pcb *pcb UNUSED, struct pbuf *p,
                     const ip_addr_t *from, u16_t port)
{
    mutex_assert_held(&net_lock);
    struct net_address a = { ip4_addr_get_u32(from), port };
    enqueue(arg, p, &a);
    pbuf_free(p);
}

struct udp_socket *udp_socket_open(void)
{
    struct payer *payer;
    if (!charge_current(CHARGE, &payer))
        return NULL;
    struct udp_socket *s = slab_alloc(&socket_cache);
    mutex_lock(&net_lock);
    net_stack_start();
    struct udp_pcb *pcb = s ? udp_new() : NULL;
    if (pcb) {
        *s = (struct udp_socket){ .pcb = pcb, .payer = payer };
        list_init(&s->queue);
        waitq_init(&s->wait, "udp");
        udp_recv(pcb, received, s);
    }
    mutex_unlock(&net_lock);
    if (pcb)
        return s;
    user_discharge(payer, CHARGE);
    if (s)
        slab_free(&socket_cache, s);
    return NULL;
}

void udp_socket_close(struct udp_socket *s)
{
    mutex_lock(&net_lock);
    udp_remove(s->pcb);
    mutex_unlock(&net_lock);
    while (!list_empty(&s->queue))
        kfree(pop(s));
    user_discharge(s->payer, CHARGE);
    slab_free(&socket_cache, s);
}

// --- addresses

static bool is_ours(const ip4_addr_t *a)
{
    struct netif *n;
    NETIF_FOREACH(n)
    {
        if (ip4_addr_cmp(a, netif_ip4_addr(n)) || ip4_addr_isbroadcast(a, n))
            return true;
    }
    return ip4_addr_isany(a) || ip4_addr_isloopback(a);
}

static int bind_to(struct udp_socket *s, const struct net_address *a)
{
    ip4_addr_t ip = { a->ip };
    if (s->pcb->local_port)
        return -EINVAL;
    if (!is_ours(&ip))
        return -EADDRNOTAVAIL;
    return udp_bind(s->pcb, &ip, a->port) == ERR_OK ? 0 : -EADDRINUSE;
}

int udp_socket_name(struct udp_socket *s, const struct net_address *a)
{
    mutex_lock(&net_lock);
    int err = bind_to(s, a);
    mutex_unlock(&net_lock);
    return err;
}

int udp_socket_set_peer(struct udp_socket *s, const struct net_address *a)
{
    int err = 0;
    mutex_lock(&net_lock);
    if (!a) {
        udp_disconnect(s->pcb);
    } else {
        ip4_addr_t ip = { a->ip };
        if (!ip4_route(&ip))
            err = -ENETUNREACH;
        else if (udp_connect(s->pcb, &ip, a->port) != ERR_OK)
            err = -EADDRINUSE;
    }
    mutex_unlock(&net_lock);
    return err;
}

void udp_socket_local(struct udp_socket *s, struct net_address *out)
{
    mutex_lock(&net_lock);
    out->ip = ip4_addr_get_u32(&s->pcb->local_ip);
    out->port = s->pcb->local_port;
    mutex_unlock(&net_lock);
}

bool udp_socket_peer(struct udp_socket *s, struct net_address *out)
{
    mutex_lock(&net_lock);
    bool connected = s->pcb->flags & UDP_FLAGS_CONNECTED;
    out->ip = ip4_addr_get_u32(&s->pcb->remote_ip);
    out->port = s->pcb->remote_port;
    mutex_unlock(&net_lock);
    return connected;
}

// --- options

static u8 option_bit(enum udp_option option)
{
    return option == UDP_BROADCAST ? SOF_BROADCAST : SOF_REUSEADDR;
}

void udp_socket_set_option(struct udp_socket *s, enum udp_option option,
                           bool on)
{
    mutex_lock(&net_lock);
    if (on)
        ip_set_option(s->pcb, option_bit(option));
    else
        ip_reset_option(s->pcb, option_bit(option));
    mutex_unlock(&net_lock);
}

bool udp_socket_option(struct udp_socket *s, enum udp_option option)
{
    mutex_lock(&net_lock);
    bool on = ip_get_option(s->pcb, option_bit(option));
    mutex_unlock(&net_lock);
    return on;
}

// --- datagrams

static int error_of(err_t err)
{
    switch (err) {
    case ERR_OK:
        return 0;
    case ERR_WOULDBLOCK:
        return -EAGAIN;
    case ERR_RTE:
        return -ENETUNREACH;
    case ERR_USE:
        return -EADDRINUSE;
    default:
        return -ENOMEM;
    }
}

// 0: lwIP may send it.
static int check_route(struct udp_socket *s, const ip4_addr_t *to, u32 bytes)
{
    struct netif *n = ip4_route(to);
    if (!n)
        return -ENETUNREACH;
    if (n->mtu && bytes + HEADERS > n->mtu)
        return -EMSGSIZE;
    if (ip4_addr_isbroadcast(to, n) && !ip_get_option(s->pcb, SOF_BROADCAST))
        return -EACCES;
    return 0;
}

static int send_locked(struct udp_socket *s, const struct net_address *a,
                       struct pbuf *p)
{
    ip4_addr_t to = s->pcb->remote_ip;
    u16 port = s->pcb->remote_port;
    if (a) {
        to.addr = a->ip;
        port = a->port;
    } else if (!(s->pcb->flags & UDP_FLAGS_CONNECTED)) {
        return -EDESTADDRREQ;
    }
    int err = check_route(s, &to, p->tot_len);
    if (!err)
        err = error_of(udp_sendto(s->pcb, p, &to, port));
    net_deliver_own();
    return err;
}

// The buffer has no room for headers, so lwIP leaves it as it is: it puts them
// into one of their own.
int udp_socket_send(struct udp_socket *s, const struct net_address *a,
                    const void *data, u32 bytes)
{
    if (bytes > UDP_BYTES_MAX)
        return -EMSGSIZE;
    mutex_lock(&net_lock);
    struct pbuf *p = pbuf_alloc(PBUF_RAW, (u16_t)bytes, PBUF_RAM);
    int err = -ENOMEM;
    if (p) {
        memcpy(p->payload, data, bytes);
        err = send_locked(s, a, p);
        pbuf_free(p);
    }
    mutex_unlock(&net_lock);
    return err;
}

struct datagram *udp_socket_take(struct udp_socket *s)
{
    struct datagram *d = NULL;
    mutex_lock(&net_lock);
    if (!list_empty(&s->queue)) {
        d = pop(s);
        s->queued -= memory_of(d->bytes);
        WRITE_ONCE(s->count, s->count - 1);
    }
    mutex_unlock(&net_lock);
    return d;
}

void udp_socket_put_back(struct udp_socket *s, struct datagram *d)
{
    mutex_lock(&net_lock);
    list_push_front(&s->queue, &d->node);
    s->queued += memory_of(d->bytes);
    WRITE_ONCE(s->count, s->count + 1);
    mutex_unlock(&net_lock);
}

bool udp_socket_has_datagram(const struct udp_socket *s)
{
    return READ_ONCE(s->count) != 0;
}

struct waitq *udp_socket_waitq(struct udp_socket *s)
{
    return &s->wait;
}

u64 udp_socket_lost(void)
{
    mutex_assert_held(&net_lock);
    return lost;
}
