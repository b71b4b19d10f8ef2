// Sockets: AF_INET, SOCK_DGRAM; all else is refused with the error that Linux
// has for what it does not know. The layouts are Linux's; addresses and ports
// in them have the highest byte first.
#include "kernel/base/log.h"
#include "kernel/net/socket.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_types.h"
#include "kernel/syscall/vector.h"
#include "kernel/task/credentials.h"
#include "kernel/task/signal.h"
#include "lib/string.h"

#define AF_UNSPEC 0
#define AF_INET 2
#define AF_MAX 46
#define SOCK_DGRAM 2u
#define SOCK_MAX 11u // types above it are wrong, not unknown
#define IPPROTO_UDP 17
#define PROTOCOLS 256

#define MSG_OOB 0x1u
#define MSG_PEEK 0x2u
#define MSG_TRUNC 0x20u
#define MSG_DONTWAIT 0x40u
#define MSG_ERRQUEUE 0x2000u
#define MSG_NOSIGNAL 0x4000u

#define PORTS_OF_ROOT 1024u

struct sockaddr_in {
    u16 family, port;
    u32 address;
    u8 zero[8];
};
_Static_assert(sizeof(struct sockaddr_in) == 16, "sockaddr_in of the ABI");

s32 sys_socket(s32 family, u32 type, s32 protocol)
{
    struct file *f;
    u32 flags = type & ~0xfu, kind = type & 0xf;
    if (flags & ~(O_NONBLOCK | O_CLOEXEC))
        return -EINVAL;
    if (family < 0 || family >= AF_MAX)
        return -EAFNOSUPPORT;
    if (kind >= SOCK_MAX)
        return -EINVAL;
    if (family != AF_INET)
        return -EAFNOSUPPORT;
    if (protocol < 0 || protocol >= PROTOCOLS)
        return -EINVAL;
    if (kind != SOCK_DGRAM)
        return -ESOCKTNOSUPPORT;
    if (protocol && protocol != IPPROTO_UDP)
        return -EPROTONOSUPPORT;
    int err = socket_create(flags & O_NONBLOCK, &f);
    return err ? err : fd_install(f, flags & O_CLOEXEC, 0);
}

// The file of a descriptor that is a socket. 0, -EBADF, -ENOTSOCK.
static int borrow(u32 fd, struct fd_ref *r)
{
    int err = fd_borrow(fd, r);
    if (err)
        return err;
    if (socket_of(r->file))
        return 0;
    fd_return(r);
    return -ENOTSOCK;
}

// --- addresses

static int address_from_user(u32 user, u32 size, struct net_address *out,
                             u16 *family)
{
    struct sockaddr_in a = { .family = AF_UNSPEC };
    if (size < sizeof(a.family) || (s32)size < 0)
        return -EINVAL;
    if (copy_from_user(&a, user, MIN(size, sizeof(a))))
        return -EFAULT;
    *family = a.family;
    if (a.family == AF_INET && size < sizeof(a))
        return -EINVAL;
    *out = (struct net_address){ a.address, __builtin_bswap16(a.port) };
    return 0;
}

// Writes as much of the address as the program has room for, and its size.
static int address_to_user(const struct net_address *a, u32 user, u32 user_size)
{
    struct sockaddr_in in = { .family = AF_INET,
                              .port = __builtin_bswap16(a->port),
                              .address = a->ip };
    u32 room;
    if (user_load_u32(user_size, &room))
        return -EFAULT;
    if ((s32)room < 0)
        return -EINVAL;
    if (copy_to_user(user, &in, MIN(room, sizeof(in))))
        return -EFAULT;
    return user_store_u32(user_size, sizeof(in)) ? -EFAULT : 0;
}

s32 sys_bind(u32 fd, u32 address, u32 size)
{
    struct fd_ref r;
    struct net_address a;
    u16 family;
    int err = borrow(fd, &r);
    if (err)
        return err;
    err = address_from_user(address, size, &a, &family);
    if (!err && size < sizeof(struct sockaddr_in))
        err = -EINVAL;
    if (!err && family != AF_INET && (family != AF_UNSPEC || a.ip))
        err = -EAFNOSUPPORT;
    if (!err && a.port && a.port < PORTS_OF_ROOT && !is_root())
        err = -EACCES;
    if (!err)
        err = udp_socket_name(socket_of(r.file), &a);
    fd_return(&r);
    return err;
}

s32 sys_connect(u32 fd, u32 address, u32 size)
{
    struct fd_ref r;
    struct net_address a;
    u16 family;
    int err = borrow(fd, &r);
    if (err)
        return err;
    err = address_from_user(address, size, &a, &family);
    if (!err && family != AF_INET && family != AF_UNSPEC)
        err = -EAFNOSUPPORT;
    if (!err)
        err = udp_socket_set_peer(socket_of(r.file),
                                  family == AF_INET ? &a : NULL);
    fd_return(&r);
    return err;
}

s32 sys_getsockname(u32 fd, u32 address, u32 size)
{
    struct fd_ref r;
    struct net_address a;
    int err = borrow(fd, &r);
    if (err)
        return err;
    udp_socket_local(socket_of(r.file), &a);
    fd_return(&r);
    return address_to_user(&a, address, size);
}

s32 sys_getpeername(u32 fd, u32 address, u32 size)
{
    struct fd_ref r;
    struct net_address a;
    int err = borrow(fd, &r);
    if (err)
        return err;
    bool connected = udp_socket_peer(socket_of(r.file), &a);
    fd_return(&r);
    return connected ? address_to_user(&a, address, size) : -ENOTCONN;
}

s32 sys_shutdown(u32 fd, s32 how)
{
    struct fd_ref r;
    int err = borrow(fd, &r);
    if (err)
        return err;
    err = how < 0 || how > 2 ? -EINVAL
                             : socket_shut_down(r.file, how != 1, how != 0);
    fd_return(&r);
    return err;
}

// For sockets of streams.
static s32 not_for_datagrams(u32 fd)
{
    struct fd_ref r;
    int err = borrow(fd, &r);
    if (err)
        return err;
    fd_return(&r);
    return -EOPNOTSUPP;
}

s32 sys_listen(u32 fd, s32 backlog UNUSED)
{
    return not_for_datagrams(fd);
}

s32 sys_accept4(u32 fd, u32 address UNUSED, u32 size UNUSED, u32 flags)
{
    return flags & ~(O_NONBLOCK | O_CLOEXEC) ? -EINVAL : not_for_datagrams(fd);
}

// --- datagrams

static struct transfer_mode mode_of(const struct file *f, u32 flags)
{
    return (struct transfer_mode){
        .nonblocking = flags & MSG_DONTWAIT || READ_ONCE(f->flags) & O_NONBLOCK,
        .peek = flags & MSG_PEEK,
    };
}

static int send_to(const struct file *f, struct io *io, u32 flags, u32 address,
                   u32 size)
{
    struct net_address a;
    u16 family = AF_INET;
    if (flags & MSG_OOB)
        return -EOPNOTSUPP;
    int err = address ? address_from_user(address, size, &a, &family) : 0;
    if (err)
        return err;
    if (family != AF_INET)
        return -EAFNOSUPPORT;
    if (address && !a.port)
        return -EINVAL;
    int done = socket_send((struct file *)f, io, mode_of(f, flags),
                           address ? &a : NULL);
    if (done == -EPIPE && !(flags & MSG_NOSIGNAL))
        signal_send_thread(current, SIGPIPE, NULL);
    return done;
}

s32 sys_sendto(u32 fd, u32 buffer, u32 count, u32 flags, u32 address, u32 size)
{
    struct fd_ref r;
    struct iovec_k part;
    struct io io;
    int err = borrow(fd, &r);
    if (err)
        return err;
    io_init(&io, &part, buffer, count, false);
    int done = send_to(r.file, &io, flags, address, size);
    fd_return(&r);
    return done;
}

static int receive_from(struct file *f, struct io *io, u32 flags,
                        struct net_address *from)
{
    if (flags & MSG_OOB)
        return -EOPNOTSUPP;
    if (flags & MSG_ERRQUEUE)
        return -EAGAIN;
    return socket_receive(f, io, mode_of(f, flags), from);
}

// What a receiving call returns for a datagram of `bytes`.
static s32 received(int bytes, u32 room, u32 flags)
{
    return flags & MSG_TRUNC ? bytes : (s32)MIN((u32)bytes, room);
}

s32 sys_recvfrom(u32 fd, u32 buffer, u32 count, u32 flags, u32 address,
                 u32 size)
{
    struct fd_ref r;
    struct iovec_k part;
    struct io io;
    struct net_address from = { 0, 0 };
    int err = borrow(fd, &r);
    if (err)
        return err;
    io_init(&io, &part, buffer, count, false);
    int done = receive_from(r.file, &io, flags, &from);
    fd_return(&r);
    if (done < 0)
        return done;
    err = address ? address_to_user(&from, address, size) : 0;
    return err ? err : received(done, count, flags);
}

// --- messages: datagrams in parts

struct msghdr {
    u32 name, name_size;
    u32 parts, part_count;
    u32 control, control_size;
    u32 flags;
};
_Static_assert(sizeof(struct msghdr) == 28, "struct msghdr of the ABI");

// The file, the header and its parts. 0: the caller calls end_message().
static int begin_message(u32 fd, u32 message, struct fd_ref *r,
                         struct msghdr *m, struct vector *v)
{
    int err = borrow(fd, r);
    if (err)
        return err;
    if (copy_from_user(m, message, sizeof(*m)))
        err = -EFAULT;
    else if (m->part_count > IOV_MAX)
        err = -EMSGSIZE;
    else if (m->name && (s32)m->name_size < 0)
        err = -EINVAL;
    else
        err = vector_get(v, m->parts, m->part_count);
    if (err)
        fd_return(r);
    return err;
}

static void end_message(struct fd_ref *r, struct vector *v)
{
    vector_put(v);
    fd_return(r);
}

s32 sys_sendmsg(u32 fd, u32 message, u32 flags)
{
    struct fd_ref r;
    struct msghdr m;
    struct vector v;
    int done = begin_message(fd, message, &r, &m, &v);
    if (done)
        return done;
    // There are no control messages that a sender could use.
    done = m.control_size ? -EINVAL
                          : send_to(r.file, &v.io, flags,
                                    m.name_size ? m.name : 0, m.name_size);
    end_message(&r, &v);
    return done;
}

s32 sys_recvmsg(u32 fd, u32 message, u32 flags)
{
    struct fd_ref r;
    struct msghdr m;
    struct vector v;
    struct net_address from = { 0, 0 };
    int done = begin_message(fd, message, &r, &m, &v);
    if (done)
        return done;
    u32 room = v.io.left;
    done = receive_from(r.file, &v.io, flags, &from);
    end_message(&r, &v);
    if (done < 0)
        return done;
    u32 sizes = message + offsetof(struct msghdr, name_size);
    int err = m.name ? address_to_user(&from, m.name, sizes) : 0;
    if (err)
        return err;
    u32 told = (u32)done > room ? MSG_TRUNC : 0;
    if (user_store_u32(message + offsetof(struct msghdr, control_size), 0) ||
        user_store_u32(message + offsetof(struct msghdr, flags), told))
        return -EFAULT;
    return received(done, room, flags);
}

// --- options

#define SOL_SOCKET 1
enum {
    SO_REUSEADDR = 2,
    SO_TYPE = 3,
    SO_ERROR = 4,
    SO_BROADCAST = 6,
    SO_RCVBUF = 8,
    SO_RCVTIMEO = 20,
    SO_PROTOCOL = 38,
    SO_DOMAIN = 39,
    SO_RCVTIMEO_64 = 66,
};

static int set_timeout(struct file *f, u32 value, u32 size, bool wide)
{
    struct {
        s64 sec, usec;
    } t;
    struct timeval32 narrow;
    if (size < (wide ? sizeof(t) : sizeof(narrow)))
        return -EINVAL;
    if (wide ? copy_from_user(&t, value, sizeof(t))
             : copy_from_user(&narrow, value, sizeof(narrow)))
        return -EFAULT;
    if (!wide) {
        t.sec = narrow.sec;
        t.usec = narrow.usec;
    }
    if (t.usec < 0 || t.usec >= 1000000)
        return -EDOM;
    // Linux takes a negative time for none, and 0 for forever.
    if (t.sec > INT32_MAX || (!t.sec && !t.usec))
        socket_set_timeout(f, WAIT_FOREVER);
    else
        socket_set_timeout(f, t.sec < 0 ? 0
                                        : (u64)t.sec * NSEC_PER_SEC +
                                              (u64)t.usec * NSEC_PER_USEC);
    return 0;
}

static int set_flag(struct file *f, u32 option, u32 value, u32 size)
{
    u32 on;
    if (size < sizeof(on))
        return -EINVAL;
    if (user_load_u32(value, &on))
        return -EFAULT;
    udp_socket_set_option(
        socket_of(f),
        option == SO_BROADCAST ? UDP_BROADCAST : UDP_REUSE_ADDRESS, on);
    return 0;
}

static int set_option(struct file *f, s32 level, u32 option, u32 value,
                      u32 size)
{
    if (level != SOL_SOCKET)
        return -ENOPROTOOPT;
    switch (option) {
    case SO_REUSEADDR:
    case SO_BROADCAST:
        return set_flag(f, option, value, size);
    case SO_RCVTIMEO:
    case SO_RCVTIMEO_64:
        return set_timeout(f, value, size, option == SO_RCVTIMEO_64);
    default:
        return -ENOPROTOOPT;
    }
}

s32 sys_setsockopt(u32 fd, s32 level, u32 option, u32 value, u32 size)
{
    struct fd_ref r;
    int err = borrow(fd, &r);
    if (err)
        return err;
    err = set_option(r.file, level, option, value, size);
    fd_return(&r);
    return err;
}

// The value of an option that is one word.
static int get_option(const struct file *f, s32 level, u32 option, u32 *out)
{
    struct udp_socket *s = socket_of(f);
    if (level != SOL_SOCKET)
        return -EOPNOTSUPP;
    switch (option) {
    case SO_REUSEADDR:
        *out = udp_socket_option(s, UDP_REUSE_ADDRESS);
        return 0;
    case SO_BROADCAST:
        *out = udp_socket_option(s, UDP_BROADCAST);
        return 0;
    case SO_TYPE:
        *out = SOCK_DGRAM;
        return 0;
    case SO_ERROR:
        *out = 0;
        return 0;
    case SO_RCVBUF:
        *out = UDP_QUEUE_BYTES;
        return 0;
    case SO_PROTOCOL:
        *out = IPPROTO_UDP;
        return 0;
    case SO_DOMAIN:
        *out = AF_INET;
        return 0;
    default:
        return -ENOPROTOOPT;
    }
}

s32 sys_getsockopt(u32 fd, s32 level, u32 option, u32 value, u32 size)
{
    struct fd_ref r;
    u32 word, room;
    int err = borrow(fd, &r);
    if (err)
        return err;
    err = get_option(r.file, level, option, &word);
    fd_return(&r);
    if (err)
        return err;
    if (user_load_u32(size, &room))
        return -EFAULT;
    if ((s32)room < 0)
        return -EINVAL;
    room = MIN(room, sizeof(word));
    if (copy_to_user(value, &word, room) || user_store_u32(size, room))
        return -EFAULT;
    return 0;
}
