#include "user/libremote/link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/libremote/message.h"

#define READ_SIZE 4096
#define READS_MAX 64 // datagrams, before others get their turn

int link_open_udp(struct link *l, uint16_t port)
{
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };

    l->serial = false;
    l->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0)
        return -1;
    if (bind(l->fd, (struct sockaddr *)&any, sizeof(any)) == 0)
        return 0;
    int error = errno;
    close(l->fd);
    errno = error;
    return -1;
}

int link_open_serial(struct link *l, const char *path)
{
    l->serial = true;
    if (line_open(&l->line, path) < 0)
        return -1;
    l->fd = l->line.fd;
    return 0;
}

void link_send(struct link *l, bool to_peer, const void *datagram, size_t size)
{
    const struct sockaddr_in *to = to_peer ? &l->peer : &l->from;
    uint8_t frame[FRAME_MAX];

    if (l->serial)
        line_put(&l->line, frame,
                 frame_encode(frame, REMOTE_FRAME, datagram, size));
    else
        (void)!sendto(l->fd, datagram, size, 0, (const struct sockaddr *)to,
                      sizeof(*to));
}

static void take_frame(void *link, const struct frame *f)
{
    struct link *l = link;

    if (f->type == REMOTE_FRAME)
        l->take(l->arg, f->payload, f->size);
}

static int take_serial(struct link *l)
{
    uint8_t bytes[READ_SIZE];
    int got = line_read(&l->line, bytes, sizeof(bytes), 0);

    if (got > 0)
        frame_feed(&l->reader, bytes, (size_t)got, take_frame, l);
    if (got < 0)
        errno = l->line.error;
    return got < 0 ? -1 : 0;
}

void link_idle(struct link *l)
{
    if (l->serial)
        frame_idle(&l->reader, take_frame, l);
}

// Errors of UDP concern one datagram (nobody listens at the peer's port).
int link_take(struct link *l)
{
    uint8_t bytes[READ_SIZE];

    if (l->serial)
        return take_serial(l);
    for (int i = 0; i < READS_MAX; i++) {
        socklen_t length = sizeof(l->from);
        ssize_t got = recvfrom(l->fd, bytes, sizeof(bytes), MSG_DONTWAIT,
                               (struct sockaddr *)&l->from, &length);
        if (got < 0)
            break;
        l->take(l->arg, bytes, (size_t)got);
    }
    return 0;
}
