// A terminal as a line. The lock is that of flock: every program that uses the
// port for frames takes it (also init, while it works for tools/vm).
#include "user/libtransfer/line.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <termios.h>
#include <unistd.h>

#define STUCK_MS 5000

static int set_modes(int fd)
{
    struct termios modes;

    if (tcgetattr(fd, &modes) < 0)
        return -1;
    cfmakeraw(&modes);
    cfsetispeed(&modes, B115200);
    cfsetospeed(&modes, B115200);
    modes.c_cflag &= ~(tcflag_t)(CSTOPB | CRTSCTS);
    modes.c_cflag |= CLOCAL | CREAD;
    modes.c_cc[VMIN] = 1;
    modes.c_cc[VTIME] = 0;
    return tcsetattr(fd, TCSANOW, &modes);
}

int line_open(struct line *l, const char *path)
{
    l->error = 0;
    l->fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (l->fd < 0)
        return -1;
    if (flock(l->fd, LOCK_EX | LOCK_NB) < 0 || set_modes(l->fd) < 0) {
        int error = errno;

        close(l->fd);
        errno = error;
        return -1;
    }
    return 0;
}

int line_read(struct line *l, void *buf, size_t size, int timeout_ms)
{
    struct pollfd wait = { .fd = l->fd, .events = POLLIN };
    ssize_t got;

    if (l->error != 0)
        return -1;
    if (poll(&wait, 1, timeout_ms) <= 0)
        return 0;
    got = read(l->fd, buf, size);
    if (got > 0)
        return (int)got;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    l->error = got < 0 ? errno : EIO;
    return -1;
}

void line_put(void *line, const uint8_t *frame, size_t size)
{
    struct line *l = line;
    struct pollfd wait = { .fd = l->fd, .events = POLLOUT };

    while (size > 0 && l->error == 0) {
        ssize_t written = write(l->fd, frame, size);

        if (written > 0) {
            frame += written;
            size -= (size_t)written;
        } else if (written < 0 && errno != EAGAIN && errno != EINTR) {
            l->error = errno;
        } else if (poll(&wait, 1, STUCK_MS) == 0) {
            return;
        }
    }
}
