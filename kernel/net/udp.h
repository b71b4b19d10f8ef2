// UDP sockets, without descriptors and user memory.
//
// All take net_lock themselves, and sleep. A socket is used by any number of
// threads until udp_socket_close.
#pragma once

#include "kernel/sync/waitq.h"

#define UDP_BYTES_MAX 65507u // that fit into one IPv4 packet
// Of the datagrams that wait for the program, with what their memory costs.
#define UDP_QUEUE_BYTES KIB(64)

struct udp_socket;

struct net_address {
    u32 ip; // as in the packet: the first byte is the lowest
    u16 port;
};

struct datagram {
    struct list node;
    struct net_address from;
    u32 bytes;
    u8 data[];
};

struct udp_socket *
udp_socket_open(void); // NULL: no memory, or the user's limit
void udp_socket_close(struct udp_socket *s);
// Port 0: one that is free. 0, -EADDRINUSE, -EADDRNOTAVAIL, -EINVAL: it is
// bound.
int udp_socket_name(struct udp_socket *s, const struct net_address *a);
// The only peer; NULL: none any more. 0, -ENETUNREACH, -EADDRINUSE: no port is
// free.
int udp_socket_set_peer(struct udp_socket *s, const struct net_address *a);
void udp_socket_local(struct udp_socket *s, struct net_address *out);
bool udp_socket_peer(struct udp_socket *s, struct net_address *out);
enum udp_option { UDP_BROADCAST, UDP_REUSE_ADDRESS };
void udp_socket_set_option(struct udp_socket *s, enum udp_option option,
                           bool on);
bool udp_socket_option(struct udp_socket *s, enum udp_option option);
// To a: NULL: the peer. 0; -EAGAIN: the card has no room now;
// -EDESTADDRREQ, -EMSGSIZE, -ENETUNREACH, -EACCES (broadcast), -ENOMEM.
int udp_socket_send(struct udp_socket *s, const struct net_address *a,
                    const void *data, u32 bytes);
// The datagram that has waited longest; NULL: there is none. The caller frees
// it by kfree, or puts it back as the first.
struct datagram *udp_socket_take(struct udp_socket *s);
void udp_socket_put_back(struct udp_socket *s, struct datagram *d);
// Without a lock: whether a datagram waits; who waits for one is woken.
bool udp_socket_has_datagram(const struct udp_socket *s);
struct waitq *udp_socket_waitq(struct udp_socket *s);
// net_lock: datagrams that found a queue full, of all sockets ever.
u64 udp_socket_lost(void);
