// UDP sockets of one machine: datagrams by 127.0.0.1, what waits for a slow
// reader and what is lost, options, errors.
//
//     udp serve    for tests/system/test_net.py: echoes what arrives at port 7;
//                  "end", "wait" (until something comes to port 8), and "send
//                  N" are commands; it gives up when nothing has come for
//                  a minute of the machine's time
#include "test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>

#define PORT 5000
#define LARGEST 65507
#define SENT 5000
#define PATIENCE 60 // seconds

static char buf[70000];

static struct sockaddr_in at(const char *ip, unsigned port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
    check(inet_pton(AF_INET, ip, &a.sin_addr) == 1);
    return a;
}

#define ADDRESS(a) (struct sockaddr *)&(a), sizeof(a)

static int udp(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    check(fd >= 0);
    return fd;
}

static int udp_at(unsigned port)
{
    int fd = udp();
    struct sockaddr_in a = at("127.0.0.1", port);
    check(bind(fd, ADDRESS(a)) == 0);
    return fd;
}

static void datagrams(void)
{
    struct sockaddr_in to = at("127.0.0.1", PORT), from;
    socklen_t size = sizeof(from);
    int a = udp_at(PORT), b = udp();
    struct pollfd p = { a, POLLIN | POLLOUT, 0 };
    check(poll(&p, 1, 0) == 1 && p.revents == POLLOUT);
    check_error(recv(a, buf, 10, MSG_DONTWAIT), EAGAIN);
    check(sendto(b, "hello", 5, 0, ADDRESS(to)) == 5);
    check(sendto(b, "", 0, 0, ADDRESS(to)) == 0);
    check(poll(&p, 1, -1) == 1 && p.revents == (POLLIN | POLLOUT));
    int waiting = 0;
    check(ioctl(a, FIONREAD, &waiting) == 0 && waiting == 5);
    check(recv(a, buf, 3, MSG_PEEK) == 3 && memcmp(buf, "hel", 3) == 0);
    check(recv(a, buf, 3, MSG_PEEK | MSG_TRUNC) == 5);
    check(recvfrom(a, buf, 9, 0, (struct sockaddr *)&from, &size) == 5);
    check(memcmp(buf, "hello", 5) == 0 && size == sizeof(from));
    check(from.sin_family == AF_INET && ntohs(from.sin_port) >= 1024);
    check(from.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    check(recv(a, buf, 9, 0) == 0);
    check(sendto(a, "back", 4, 0, ADDRESS(from)) == 4);
    check(read(b, buf, 2) == 2 &&
          memcmp(buf, "ba", 2) == 0); // the rest is gone
    check_error(recv(b, buf, 9, MSG_DONTWAIT), EAGAIN);
    memset(buf, 'x', sizeof(buf));
    check(sendto(b, buf, LARGEST, 0, ADDRESS(to)) == -1 ||
          recv(a, buf, sizeof(buf), 0) == LARGEST);
    check_error(sendto(b, buf, LARGEST + 1, 0, ADDRESS(to)), EMSGSIZE);
    close(a);
    close(b);
    ok("datagrams, whole or cut, and who sent them");
}

static void peers(void)
{
    struct sockaddr_in to = at("127.0.0.1", PORT), from;
    socklen_t size = sizeof(from);
    int a = udp_at(PORT), b = udp(), c = udp();
    struct iovec parts[] = { { "one ", 4 }, { "two", 3 } };
    check_error(getpeername(b, (struct sockaddr *)&from, &size), ENOTCONN);
    check_error(write(b, "x", 1), EDESTADDRREQ);
    check(connect(b, ADDRESS(to)) == 0);
    check(getpeername(b, (struct sockaddr *)&from, &size) == 0);
    check(from.sin_port == htons(PORT));
    check(writev(b, parts, 2) == 7 && read(a, buf, 100) == 7);
    check(memcmp(buf, "one two", 7) == 0);
    check(getsockname(b, (struct sockaddr *)&from, &size) == 0);
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // A socket with a peer takes datagrams from it alone.
    check(sendto(c, "no", 2, 0, ADDRESS(from)) == 2);
    check(sendto(a, "yes", 3, 0, ADDRESS(from)) == 3);
    check(recv(b, buf, 100, 0) == 3);
    struct sockaddr none = { .sa_family = AF_UNSPEC };
    check(shutdown(b, SHUT_RD) == 0 && read(b, buf, 10) == 0);
    check(shutdown(b, SHUT_WR) == 0);
    check_error(send(b, "x", 1, MSG_NOSIGNAL), EPIPE);
    check(connect(b, &none, sizeof(none)) == 0);
    check_error(shutdown(c, SHUT_RD), ENOTCONN);
    close(a);
    close(b);
    close(c);
    ok("a peer");
}

// How many datagrams of `bytes` wait for a reader that does not read.
static int kept(int bytes)
{
    struct sockaddr_in to = at("127.0.0.1", PORT);
    int a = udp_at(PORT), b = udp(), count = 0;
    for (int i = 0; i < SENT; i++) {
        memcpy(buf, &i, sizeof(i));
        check(sendto(b, buf, bytes, 0, ADDRESS(to)) == bytes);
    }
    // The first ones wait, in order; what came later is lost.
    while (recv(a, buf, sizeof(buf), MSG_DONTWAIT) == bytes) {
        check(memcmp(buf, &count, sizeof(count)) == 0);
        count++;
    }
    check(errno == EAGAIN);
    check(sendto(b, "last", 4, 0, ADDRESS(to)) == 4);
    check(recv(a, buf, 9, 0) == 4);
    close(a);
    close(b);
    return count;
}

static void slow_reader(void)
{
    int small = kept(8), large = kept(1400);
    check(small >= 100 && small < SENT && large >= 20 && large < small);
    ok("a slow reader loses datagrams, and memory is bounded");
}

static void waiting(void)
{
    struct sockaddr_in to = at("127.0.0.1", PORT);
    struct timeval t = { 0, 50000 };
    int a = udp_at(PORT);
    check(setsockopt(a, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) == 0);
    uint64_t start = now_ns();
    check_error(recv(a, buf, 10, 0), EAGAIN);
    check(now_ns() - start >= 50000000);
    t.tv_usec = 0;
    check(setsockopt(a, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        sleep_ms(20);
        int b = udp();
        check(sendto(b, "woken", 5, 0, ADDRESS(to)) == 5);
        pause();
    }
    check(recv(a, buf, 10, 0) == 5);
    kill(pid, SIGKILL);
    check(waitpid(pid, NULL, 0) == pid);
    close(a);
    // What a killed process had open is closed.
    pid = fork();
    if (pid == 0) {
        udp_at(PORT);
        pause();
    }
    do {
        a = udp();
        int err = bind(a, ADDRESS(to));
        check(err == 0 || errno == EADDRINUSE);
        close(a);
        if (err)
            break;
        sleep_ms(1);
    } while (true);
    kill(pid, SIGKILL);
    check(waitpid(pid, NULL, 0) == pid);
    close(udp_at(PORT));
    ok("waiting for a datagram, with and without a limit");
}

static void names(void)
{
    struct sockaddr_in any = at("0.0.0.0", 0), port = at("127.0.0.1", PORT);
    struct sockaddr_in low = at("127.0.0.1", 7), other = at("9.9.9.9", PORT);
    socklen_t size = 5;
    int a = udp_at(PORT), b = udp(), on = 1, off = 0;
    check_error(bind(b, ADDRESS(port)), EADDRINUSE);
    check_error(bind(a, ADDRESS(any)), EINVAL);
    check_error(bind(b, ADDRESS(other)), EADDRNOTAVAIL);
    check_error(bind(b, (struct sockaddr *)&any, 8), EINVAL);
    any.sin_family = AF_INET6;
    check_error(bind(b, ADDRESS(any)), EAFNOSUPPORT);
    any.sin_family = AF_INET;
    if (geteuid() == 0) {
        check(seteuid(1000) == 0);
        check_error(bind(b, ADDRESS(low)), EACCES);
        check(seteuid(0) == 0);
    }
    check(bind(b, ADDRESS(any)) == 0);
    check(getsockname(b, (struct sockaddr *)&any, &size) == 0);
    check(size == sizeof(any));
    check(getsockname(b, (struct sockaddr *)&any, &size) == 0);
    check(ntohs(any.sin_port) >= 1024);
    check_error(getsockname(b, (struct sockaddr *)8, &size), EFAULT);
    close(b);
    b = udp();
    check(setsockopt(a, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
    check(setsockopt(b, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
    check(bind(b, ADDRESS(port)) == 0);
    size = sizeof(off);
    check(getsockopt(b, SOL_SOCKET, SO_REUSEADDR, &off, &size) == 0 && off);
    close(a);
    close(b);
    ok("names and ports");
}

static void refusals(void)
{
    struct sockaddr_in to = at("127.0.0.1", PORT), zero = at("127.0.0.1", 0);
    struct stat s;
    int a = udp(), value;
    socklen_t size = sizeof(value);
    char link[30];
    check_error(socket(AF_INET, 11, 0), EINVAL);
    check_error(socket(AF_INET, SOCK_DGRAM, 6), EPROTONOSUPPORT);
    check_error(socket(99, SOCK_DGRAM, 0), EAFNOSUPPORT);
    check_error(socket(AF_INET, SOCK_DGRAM | 0x100000, 0), EINVAL);
    check_error(socket(AF_INET, SOCK_DGRAM, 999), EINVAL);
    check_error(listen(a, 1), EOPNOTSUPP);
    check_error(accept(a, NULL, NULL), EOPNOTSUPP);
    check_error(listen(1, 1), ENOTSOCK);
    check_error(listen(99, 1), EBADF);
    check_error(sendto(a, "x", 1, 0, ADDRESS(zero)), EINVAL);
    check_error(sendto(a, "x", 1, MSG_OOB, ADDRESS(to)), EOPNOTSUPP);
    check_error(sendto(a, "x", 1, 0, (struct sockaddr *)8, 16), EFAULT);
    check_error(sendto(a, (void *)8, 100, 0, ADDRESS(to)), EFAULT);
    check_error(setsockopt(a, SOL_SOCKET, 999, &value, 4), ENOPROTOOPT);
    check_error(getsockopt(a, SOL_SOCKET, 999, &value, &size), ENOPROTOOPT);
    check_error(setsockopt(a, SOL_SOCKET, SO_BROADCAST, &value, 1), EINVAL);
    check(getsockopt(a, SOL_SOCKET, SO_TYPE, &value, &size) == 0);
    check(value == SOCK_DGRAM && size == sizeof(value));
    check_error(lseek(a, 0, SEEK_SET), ESPIPE);
    check(fstat(a, &s) == 0 && S_ISSOCK(s.st_mode));
    sprintf(link, "/proc/self/fd/%d", a);
    check(readlink(link, buf, sizeof(buf)) > 8);
    check(memcmp(buf, "socket:[", 8) == 0);
    check_error(open(link, O_RDONLY), ENXIO);
    close(a);
    a = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
    check(a >= 0 && fcntl(a, F_GETFD) == FD_CLOEXEC);
    check_error(read(a, buf, 1), EAGAIN);
    close(a);
    ok("what is refused, as on Linux");
}

static void messages(void)
{
    struct sockaddr_in to = at("127.0.0.1", PORT), from = { 0 };
    int a = udp_at(PORT), b = udp();
    char head[3], many[2000];
    struct iovec out[] = { { "he", 2 }, { "", 0 }, { "llo", 3 } };
    struct iovec in[] = { { head, sizeof(head) }, { many, sizeof(many) } };
    struct msghdr sent = { .msg_name = &to,
                           .msg_namelen = sizeof(to),
                           .msg_iov = out,
                           .msg_iovlen = 3 };
    struct msghdr got = { .msg_name = &from,
                          .msg_namelen = sizeof(from) + 5,
                          .msg_iov = in,
                          .msg_iovlen = 2 };
    check(sendmsg(b, &sent, 0) == 5 && recvmsg(a, &got, MSG_PEEK) == 5);
    check(memcmp(head, "hel", 3) == 0 && memcmp(many, "lo", 2) == 0);
    check(got.msg_flags == 0 && got.msg_namelen == sizeof(from));
    check(from.sin_addr.s_addr == to.sin_addr.s_addr);
    got = (struct msghdr){ .msg_iov = in, .msg_iovlen = 1 };
    check(recvmsg(a, &got, 0) == 3 && got.msg_flags == MSG_TRUNC);
    check_error(recvmsg(a, &got, MSG_DONTWAIT), EAGAIN);
    // To the peer; more parts than are held on the kernel's stack.
    struct iovec parts[1024];
    for (unsigned i = 0; i < 1024; i++)
        parts[i] = (struct iovec){ "x", 1 };
    struct msghdr long_one = { .msg_iov = parts, .msg_iovlen = 1024 };
    check_error(sendmsg(b, &long_one, 0), EDESTADDRREQ);
    check(connect(b, ADDRESS(to)) == 0 && sendmsg(b, &long_one, 0) == 1024);
    got.msg_iov = &in[1];
    check(recvmsg(a, &got, MSG_TRUNC) == 1024 && many[1023] == 'x');
    long_one.msg_iovlen = 1025;
    check_error(sendmsg(b, &long_one, 0), EMSGSIZE);
    check_error(recvmsg(a, &long_one, 0), EMSGSIZE);
    sent.msg_controllen = 16;
    check_error(sendmsg(b, &sent, 0), EINVAL);
    check_error(sendmsg(b, (void *)8, 0), EFAULT);
    check_error(recvmsg(1, &got, 0), ENOTSOCK);
    check_error(recvmsg(a, &got, MSG_OOB), EOPNOTSUPP);
    close(a);
    close(b);
    ok("messages in parts");
}

// --- for a peer

static void send_numbers(int fd, struct sockaddr_in *to, int count)
{
    for (int i = 0; i < count; i++) {
        memcpy(buf, &i, sizeof(i));
        check(sendto(fd, buf, 1000, 0, ADDRESS(*to)) == 1000);
    }
}

static int receive(int fd, int port, struct sockaddr_in *from)
{
    struct timeval t = { PATIENCE, 0 };
    socklen_t size = sizeof(*from);
    check(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) == 0);
    int n =
        recvfrom(fd, buf, sizeof(buf) - 1, 0, (struct sockaddr *)from, &size);
    if (n < 0 && errno == EAGAIN) {
        dprintf(1, "FAILED: nothing has come to port %d for %d s\n", port,
                PATIENCE);
        _exit(1);
    }
    check(n >= 0);
    return n;
}

static void serve(void)
{
    struct sockaddr_in port = at("0.0.0.0", 7), control = at("0.0.0.0", 8);
    struct sockaddr_in from;
    int a = udp(), b = udp();
    check(bind(a, ADDRESS(port)) == 0 && bind(b, ADDRESS(control)) == 0);
    int log = open("/dev/kmsg", O_WRONLY);
    dprintf(log, "port 7 is served\n");
    close(log);
    for (;;) {
        int n = receive(a, 7, &from);
        buf[n] = '\0';
        if (strcmp(buf, "end") == 0)
            return;
        if (strncmp(buf, "send ", 5) == 0)
            send_numbers(a, &from, atoi(buf + 5));
        else
            check(sendto(a, buf, n, 0, ADDRESS(from)) == n);
        if (strcmp(buf, "wait") == 0)
            receive(b, 8, &from);
    }
}

int main(int argc, char **argv)
{
    alarm(TEST_SECONDS);
    if (argc > 1 && strcmp(argv[1], "serve") == 0) {
        serve();
        return 0;
    }
    datagrams();
    messages();
    peers();
    slow_reader();
    waiting();
    names();
    refusals();
    return 0;
}
