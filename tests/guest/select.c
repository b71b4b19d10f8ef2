// Waiting for several descriptors: select, pselect, poll, ppoll.
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/time.h>

#define MS 1000000ull

static int fds[2]; // a pipe

static void fill(void)
{
    char block[4096] = "";
    check(fcntl(fds[1], F_SETFL, O_NONBLOCK) == 0);
    while (write(fds[1], block, sizeof(block)) > 0)
        ;
    check(errno == EAGAIN);
}

static void drain(void)
{
    char block[4096];
    check(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
    while (read(fds[0], block, sizeof(block)) > 0)
        ;
    check(errno == EAGAIN);
}

static int select_both(unsigned ms)
{
    fd_set in, out;
    struct timeval t = { 0, ms * 1000 };
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(fds[0], &in);
    FD_SET(fds[1], &out);
    int n = select(fds[1] + 1, &in, &out, NULL, &t);
    return n < 0 ? n
                 : (FD_ISSET(fds[0], &in) ? 1 : 0) |
                       (FD_ISSET(fds[1], &out) ? 2 : 0);
}

static int poll_both(int ms)
{
    struct pollfd p[2] = { { .fd = fds[0], .events = POLLIN },
                           { .fd = fds[1], .events = POLLOUT } };
    int n = poll(p, 2, ms);
    check(n == (p[0].revents != 0) + (p[1].revents != 0));
    return (p[0].revents == POLLIN ? 1 : 0) | (p[1].revents == POLLOUT ? 2 : 0);
}

static void readiness(void)
{
    check(select_both(0) == 2 && poll_both(0) == 2);
    check(write(fds[1], "x", 1) == 1);
    check(select_both(0) == 3 && poll_both(-1) == 3);
    fill();
    check(select_both(0) == 1 && poll_both(0) == 1);
    drain();
    check(select_both(0) == 2 && poll_both(0) == 2);
    ok("readiness of a pipe");
}

static void timing_out(void)
{
    struct pollfd p = { .fd = fds[0], .events = POLLIN };
    struct timeval t = { 0, 20000 };
    struct timespec ts = { 0, 20 * MS };
    fd_set in;

    uint64_t start = now_ns();
    check(poll(&p, 1, 20) == 0 && p.revents == 0);
    check(now_ns() - start >= 20 * MS);
    FD_ZERO(&in);
    FD_SET(fds[0], &in);
    start = now_ns();
    check(select(fds[0] + 1, &in, NULL, NULL, &t) == 0);
    check(now_ns() - start >= 20 * MS && !FD_ISSET(fds[0], &in));
    start = now_ns();
    check(ppoll(&p, 1, &ts, NULL) == 0);
    check(now_ns() - start >= 20 * MS);
    FD_SET(fds[0], &in);
    start = now_ns();
    check(pselect(fds[0] + 1, &in, NULL, NULL, &ts, NULL) == 0);
    check(now_ns() - start >= 20 * MS);
    start = now_ns();
    check(poll(NULL, 0, 10) == 0 && now_ns() - start >= 10 * MS);
    ok("time-outs");
}

static void waking(void)
{
    for (int i = 0; i < 4; i++) {
        pid_t pid = fork();
        char byte;
        check(pid >= 0);
        if (pid == 0) {
            sleep_ms(20);
            check(write(fds[1], "x", 1) == 1);
            _exit(0);
        }
        struct pollfd p = { .fd = fds[0], .events = POLLIN };
        fd_set in;
        FD_ZERO(&in);
        FD_SET(fds[0], &in);
        if (i % 2 == 0)
            check(poll(&p, 1, -1) == 1 && p.revents == POLLIN);
        else
            check(select(fds[0] + 1, &in, NULL, NULL, NULL) == 1);
        check(read(fds[0], &byte, 1) == 1);
        check(waitpid(pid, NULL, 0) == pid);
    }
    ok("waking up");
}

static void hang_up(void)
{
    int p[2];
    check(pipe(p) == 0);
    close(p[1]);
    struct pollfd reader = { .fd = p[0], .events = POLLIN };
    check(poll(&reader, 1, 1000) == 1 && (reader.revents & POLLHUP));
    close(p[0]);
    check(pipe(p) == 0);
    close(p[0]);
    struct pollfd writer = { .fd = p[1], .events = POLLOUT };
    check(poll(&writer, 1, 1000) == 1 && (writer.revents & POLLERR));
    close(p[1]);
    struct pollfd closed[2] = { { .fd = p[1], .events = POLLIN },
                                { .fd = -1, .events = POLLIN } };
    check(poll(closed, 2, 0) == 1);
    check(closed[0].revents == POLLNVAL && closed[1].revents == 0);
    fd_set in;
    FD_ZERO(&in);
    FD_SET(p[1], &in);
    check_error(select(p[1] + 1, &in, NULL, NULL, NULL), EBADF);
    ok("hang-up, error, closed descriptors");
}

static volatile int alarms;

static void on_alarm(int signal)
{
    (void)signal;
    alarms++;
}

// A periodic timer: on a busy host its first signal may arrive before the call
// that it is to interrupt.
static void interruption(void)
{
    struct itimerval timer = { { 0, 20000 }, { 0, 20000 } };
    struct pollfd p = { .fd = fds[0], .events = POLLIN };
    sigset_t blocked, none;
    fd_set in;

    on_signal(SIGALRM, on_alarm, SA_RESTART); // these calls never restart
    check(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    check_error(poll(&p, 1, -1), EINTR);
    FD_ZERO(&in);
    FD_SET(fds[0], &in);
    check_error(select(fds[0] + 1, &in, NULL, NULL, NULL), EINTR);
    timer = (struct itimerval){ 0 };
    check(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    check(alarms >= 2);
    alarms = 2;

    // A blocked signal is delivered only while ppoll waits.
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGALRM);
    check(sigprocmask(SIG_BLOCK, &blocked, NULL) == 0);
    check(raise(SIGALRM) == 0 && alarms == 2);
    check_error(ppoll(&p, 1, NULL, &none), EINTR);
    check(alarms == 3);
    check(raise(SIGALRM) == 0 && alarms == 3);
    check_error(pselect(fds[0] + 1, &in, NULL, NULL, NULL, &none), EINTR);
    check(alarms == 4);
    check(sigprocmask(SIG_BLOCK, NULL, &none) == 0);
    check(sigismember(&none, SIGALRM)); // the mask is restored
    check(sigprocmask(SIG_UNBLOCK, &blocked, NULL) == 0);
    on_signal(SIGALRM, SIG_DFL, 0);
    alarm(TEST_SECONDS);
    ok("interruption");
}

int main(void)
{
    alarm(TEST_SECONDS);
    check(pipe(fds) == 0);
    readiness();
    timing_out();
    waking();
    hang_up();
    interruption();
    return 0;
}
