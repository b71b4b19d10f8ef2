// poll and select: what is ready, time-outs, signals, closing peers.
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/select.h>

#define TOO_LONG_NS 30000000000ull // longer than a wait that does not restart

static int p[2];

static void states(void)
{
    struct pollfd f[4];
    char buf[100];
    check(pipe(p) == 0);
    f[0] = (struct pollfd){ p[0], POLLIN, 0 };
    f[1] = (struct pollfd){ p[1], POLLOUT, 0 };
    f[2] = (struct pollfd){ -1, POLLIN, 7 };
    f[3] = (struct pollfd){ 99, POLLIN, 0 };
    check(poll(f, 3, 0) == 1);
    check(f[0].revents == 0 && f[1].revents == POLLOUT && f[2].revents == 0);
    check(poll(f, 4, -1) == 2 && f[3].revents == POLLNVAL);
    check(write(p[1], "x", 1) == 1);
    check(poll(f, 2, -1) == 2 && f[0].revents == POLLIN);
    static char page[65536];
    fcntl(p[1], F_SETFL, O_NONBLOCK);
    while (write(p[1], page, 4096) > 0)
        ;
    check(poll(f, 2, -1) == 1 && f[1].revents == 0);
    close(p[1]);
    check(poll(f, 1, -1) == 1 && f[0].revents == (POLLIN | POLLHUP));
    while (read(p[0], page, sizeof(page)) > 0)
        ;
    check(poll(f, 1, -1) == 1 && f[0].revents == POLLHUP);
    close(p[0]);
    check(pipe(p) == 0);
    close(p[0]);
    f[1] = (struct pollfd){ p[1], POLLOUT, 0 };
    check(poll(f + 1, 1, -1) == 1 && (f[1].revents & POLLERR));
    close(p[1]);
    int fd = open("/bin/busybox", O_RDONLY);
    if (fd < 0)
        fd = open("/etc/passwd", O_RDONLY);
    f[0] = (struct pollfd){ fd, POLLIN | POLLOUT, 0 };
    check(poll(f, 1, -1) == 1 && f[0].revents == (POLLIN | POLLOUT));
    check(read(fd, buf, 1) == 1);
    close(fd);
    check_error(poll((struct pollfd *)8, 1, 0), EFAULT);
    check_error(poll(f, 1 << 20, 0), EINVAL);
    ok("what poll tells");
}

static void timeouts(void)
{
    struct pollfd f;
    check(pipe(p) == 0);
    f = (struct pollfd){ p[0], POLLIN, 0 };
    uint64_t start = now_ns();
    check(poll(&f, 1, 60) == 0 && f.revents == 0);
    uint64_t took = now_ns() - start;
    check(took >= 60000000 && took < TOO_LONG_NS);
    start = now_ns();
    check(poll(NULL, 0, 30) == 0 && now_ns() - start >= 30000000);
    struct timespec t = { 0, 20000000 };
    start = now_ns();
    check(ppoll(&f, 1, &t, NULL) == 0 && now_ns() - start >= 20000000);
    t.tv_nsec = 1000000000;
    check_error(ppoll(&f, 1, &t, NULL), EINVAL);
    fd_set set;
    struct timeval tv = { 0, 20000 };
    FD_ZERO(&set);
    FD_SET(p[0], &set);
    start = now_ns();
    check(select(p[0] + 1, &set, NULL, NULL, &tv) == 0);
    check(now_ns() - start >= 20000000 && !FD_ISSET(p[0], &set));
    close(p[0]);
    close(p[1]);
    ok("time-outs");
}

static void selects(void)
{
    int many[100][2];
    fd_set r, w;
    struct timeval zero = { 0, 0 };
    for (int i = 0; i < 100; i++)
        check(pipe(many[i]) == 0);
    FD_ZERO(&r);
    FD_ZERO(&w);
    for (int i = 0; i < 100; i++) {
        FD_SET(many[i][0], &r);
        FD_SET(many[i][1], &w);
    }
    check(write(many[42][1], "x", 1) == 1);
    int limit = many[99][1] + 1;
    check(select(limit, &r, &w, NULL, NULL) == 101);
    for (int i = 0; i < 100; i++) {
        check(!FD_ISSET(many[i][0], &r) == (i != 42));
        check(FD_ISSET(many[i][1], &w));
    }
    // Hundreds of queues, one of which wakes.
    pid_t child = fork();
    if (child == 0) {
        sleep_ms(50);
        check(write(many[77][1], "y", 1) == 1);
        _exit(0);
    }
    FD_ZERO(&r);
    for (int i = 0; i < 100; i++)
        if (i != 42)
            FD_SET(many[i][0], &r);
    check(select(limit, &r, NULL, NULL, NULL) == 1);
    check(FD_ISSET(many[77][0], &r));
    int status;
    check(waitpid(child, &status, 0) == child && status == 0);
    FD_ZERO(&r);
    FD_SET(many[5][0], &r);
    close(many[5][0]);
    check_error(select(limit, &r, NULL, NULL, &zero), EBADF);
    check_error(select(-1, NULL, NULL, NULL, &zero), EINVAL);
    for (int i = 0; i < 100; i++) {
        close(many[i][0]);
        close(many[i][1]);
    }
    ok("select");
}

static volatile int signals;

static void handler(int signal)
{
    (void)signal;
    signals++;
}

static void masks(void)
{
    struct pollfd f;
    sigset_t block, old, none;
    check(pipe(p) == 0);
    f = (struct pollfd){ p[0], POLLIN, 0 };
    on_signal(SIGUSR1, handler, SA_RESTART);
    sigemptyset(&none);
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    check(sigprocmask(SIG_BLOCK, &block, &old) == 0);
    check(raise(SIGUSR1) == 0 && signals == 0);
    struct timespec t = { 0, 10000000 };
    check(ppoll(&f, 1, &t, NULL) == 0 && signals == 0);
    check_error(ppoll(&f, 1, NULL, &none), EINTR); // unblocks it
    check(signals == 1);
    sigprocmask(SIG_SETMASK, NULL, &old);
    check(sigismember(&old, SIGUSR1)); // the mask is restored
    check(raise(SIGUSR1) == 0);
    check_error(pselect(0, NULL, NULL, NULL, NULL, &none), EINTR);
    check(signals == 2);
    check(pselect(0, NULL, NULL, NULL, &t, &none) == 0);
    sigprocmask(SIG_SETMASK, NULL, &old);
    check(sigismember(&old, SIGUSR1));
    check(sigprocmask(SIG_UNBLOCK, &block, NULL) == 0);

    // Stopping and continuing does not end or lengthen a wait.
    int report[2], status;
    check(pipe(report) == 0);
    pid_t child = fork();
    if (child == 0) {
        uint64_t start = now_ns();
        check(poll(&f, 1, 400) == 0);
        uint64_t took = now_ns() - start;
        check(took >= 400000000 && took < TOO_LONG_NS);
        check(write(report[1], "", 1) == 1);
        check_error(poll(&f, 1, -1), EINTR); // a handler ends it
        _exit(0);
    }
    char c;
    sleep_ms(100);
    check(kill(child, SIGSTOP) == 0);
    sleep_ms(100);
    check(kill(child, SIGCONT) == 0);
    check(read(report[0], &c, 1) == 1);
    do { // it may not wait yet
        check(kill(child, SIGUSR1) == 0);
        sleep_ms(5);
    } while (waitpid(child, &status, WNOHANG) == 0);
    check(status == 0);
    close(report[0]);
    close(report[1]);
    close(p[0]);
    close(p[1]);
    ok("signals and masks");
}

int main(void)
{
    alarm(TEST_SECONDS);
    states();
    timeouts();
    selects();
    masks();
    return 0;
}
