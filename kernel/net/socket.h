// Sockets as open files: AF_INET, SOCK_DGRAM.
#pragma once

#include "kernel/fs/file.h"
#include "kernel/net/udp.h"

// flags: O_NONBLOCK or 0. -ENOBUFS: no memory, or the user's limit.
int socket_create(u32 flags, struct file **out);
// The socket behind the file; NULL: the file is no socket.
struct udp_socket *socket_of(const struct file *f);

// O_NONBLOCK of the file, MSG_DONTWAIT of the call.
struct transfer_mode {
    bool nonblocking;
    bool peek; // the datagram stays
};
// One datagram, as many of its bytes as io takes. Its whole length, or -EAGAIN,
// -ERESTARTSYS, -EFAULT.
int socket_receive(struct file *f, struct io *io, struct transfer_mode mode,
                   struct net_address *from);
// What is in io, as one datagram. Bytes, or as udp_socket_send.
int socket_send(struct file *f, struct io *io, struct transfer_mode mode,
                const struct net_address *to);
// How long a receiver waits: WAIT_FOREVER, or nanoseconds.
void socket_set_timeout(struct file *f, u64 ns);
// -ENOTCONN. Then a receiver gets 0 bytes, a sender EPIPE and SIGPIPE.
int socket_shut_down(struct file *f, bool receiving, bool sending);
