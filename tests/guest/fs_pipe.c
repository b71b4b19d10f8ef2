// Pipes and fifos: order, atomicity, full and empty, broken, and by name.
#include "test.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define PIPE_BYTES 65536

static int p[2];
static int *volatile bad = (int *)8;

static void set_nonblocking(int fd)
{
    check(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
}

static void basics(void)
{
    char buf[16];
    int n;
    check(pipe(p) == 0);
    check_error(read(p[1], buf, 1), EBADF);
    check_error(write(p[0], buf, 1), EBADF);
    check(write(p[1], "abcdef", 6) == 6);
    check(ioctl(p[0], FIONREAD, &n) == 0 && n == 6);
    check(read(p[0], buf, 4) == 4 && !memcmp(buf, "abcd", 4));
    check(read(p[0], buf, sizeof(buf)) == 2 && !memcmp(buf, "ef", 2));
    check(write(p[1], "", 0) == 0);
    set_nonblocking(p[0]);
    check_error(read(p[0], buf, 1), EAGAIN);
    check(write(p[1], "z", 1) == 1 && close(p[1]) == 0);
    check(read(p[0], buf, 9) == 1 && read(p[0], buf, 9) == 0);
    close(p[0]);
    check_error(pipe2(p, O_APPEND), EINVAL);
    check_error(pipe(bad), EFAULT);
    check(pipe2(p, O_CLOEXEC | O_NONBLOCK) == 0);
    check(fcntl(p[0], F_GETFD) == FD_CLOEXEC);
    check(fcntl(p[1], F_GETFL) & O_NONBLOCK);
    struct stat st;
    check(fstat(p[0], &st) == 0 && S_ISFIFO(st.st_mode));
    close(p[0]);
    close(p[1]);
    ok("pipes");
}

static void full(void)
{
    static char buf[PIPE_BYTES];
    size_t total = 0;
    ssize_t n;
    check(pipe(p) == 0);
    set_nonblocking(p[1]);
    while ((n = write(p[1], buf, 4096)) > 0)
        total += (size_t)n;
    check(n == -1 && errno == EAGAIN && total == PIPE_BYTES);
    check_error(write(p[1], buf, 1), EAGAIN);
    check(read(p[0], buf, 100) == 100);
    // An atomic write fits whole or not at all. (Linux frees whole pages.)
    check_error(write(p[1], buf, 4096), EAGAIN);
    check(read(p[0], buf, PIPE_BYTES) == PIPE_BYTES - 100);
    check(write(p[1], buf, 4096) == 4096);
    close(p[0]);
    close(p[1]);
    ok("a full pipe");
}

static volatile int pipes_broken;

static void on_sigpipe(int signal)
{
    (void)signal;
    pipes_broken++;
}

static void broken(void)
{
    check(pipe(p) == 0 && close(p[0]) == 0);
    on_signal(SIGPIPE, on_sigpipe, 0);
    check_error(write(p[1], "x", 1), EPIPE);
    check(pipes_broken == 1);
    close(p[1]);

    // Also for a blocked writer.
    check(pipe(p) == 0);
    pid_t child = fork();
    if (child == 0) {
        static char big[2 * PIPE_BYTES];
        close(p[0]);
        check(write(p[1], big, sizeof(big)) == PIPE_BYTES);
        check(pipes_broken == 2);
        check_error(write(p[1], "x", 1), EPIPE);
        _exit(0);
    }
    int status, bytes = 0;
    close(p[1]);
    while (bytes < PIPE_BYTES) { // until it is full, and the child waits
        sleep_ms(1);
        check(ioctl(p[0], FIONREAD, &bytes) == 0);
    }
    close(p[0]);
    check(waitpid(child, &status, 0) == child && status == 0);
    signal(SIGPIPE, SIG_DFL);
    ok("broken pipes");
}

#define WRITERS 4
#define MESSAGES 200

static void atomic(void)
{
    static char got[4096];
    int counts[WRITERS] = { 0 }, status;
    check(pipe(p) == 0);
    for (int i = 0; i < WRITERS; i++) {
        if (fork() == 0) {
            static char message[4096];
            memset(message, 'a' + i, sizeof(message));
            for (int n = 0; n < MESSAGES; n++)
                check(write(p[1], message, sizeof(message)) == 4096);
            _exit(0);
        }
    }
    close(p[1]);
    for (int n = 0; n < WRITERS * MESSAGES; n++) {
        size_t have = 0;
        while (have < sizeof(got)) {
            ssize_t r = read(p[0], got + have, sizeof(got) - have);
            check(r > 0);
            have += (size_t)r;
        }
        for (size_t i = 1; i < sizeof(got); i++)
            check(got[i] == got[0]);
        counts[got[0] - 'a']++;
    }
    check(read(p[0], got, 1) == 0);
    for (int i = 0; i < WRITERS; i++) {
        check(counts[i] == MESSAGES);
        check(wait(&status) > 0 && status == 0);
    }
    close(p[0]);
    ok("writes of up to 4096 bytes are never mixed");
}

// Odd sizes on both sides, so that the ring wraps many times.
static void stream(void)
{
    static unsigned char buf[70000];
    const unsigned total = 3000000;
    check(pipe(p) == 0);
    pid_t child = fork();
    if (child == 0) {
        unsigned at = 0, size = 1;
        close(p[0]);
        while (at < total) {
            size = (size * 7 + 13) % sizeof(buf) + 1;
            size = size < total - at ? size : total - at;
            for (unsigned i = 0; i < size; i++)
                buf[i] = (unsigned char)((at + i) * 31 >> 3);
            check(write(p[1], buf, size) == (ssize_t)size);
            at += size;
        }
        _exit(0);
    }
    unsigned at = 0, size = 1;
    close(p[1]);
    for (;;) {
        size = (size * 11 + 5) % 9000 + 1;
        ssize_t n = read(p[0], buf, size);
        check(n >= 0);
        if (n == 0)
            break;
        for (ssize_t i = 0; i < n; i++, at++)
            check(buf[i] == (unsigned char)(at * 31 >> 3));
    }
    int status;
    check(at == total);
    check(waitpid(child, &status, 0) == child && status == 0);
    close(p[0]);
    ok("a stream keeps its order");
}

static void ping_pong(void)
{
    int q[2];
    char c = 0;
    check(pipe(p) == 0 && pipe(q) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(p[1]);
        close(q[0]);
        while (read(p[0], &c, 1) == 1)
            check(write(q[1], &c, 1) == 1);
        _exit(0);
    }
    close(p[0]);
    close(q[1]);
    for (int i = 0; i < 5000; i++) {
        char sent = (char)i;
        check(write(p[1], &sent, 1) == 1 && read(q[0], &c, 1) == 1);
        check(c == sent);
    }
    int status;
    close(p[1]);
    check(waitpid(child, &status, 0) == child && status == 0);
    close(q[0]);
    ok("ping-pong");
}

static void on_usr1(int signal)
{
    (void)signal;
}

static void interrupted(void)
{
    char c;
    int report[2], status;
    check(pipe(p) == 0 && pipe(report) == 0);
    check(fcntl(report[0], F_SETFL, O_NONBLOCK) == 0);
    pid_t child = fork();
    if (child == 0) {
        on_signal(SIGUSR1, on_usr1, 0);
        check(write(report[1], "", 1) == 1);
        check_error(read(p[0], &c, 1), EINTR);
        on_signal(SIGUSR1, on_usr1, SA_RESTART);
        check(write(report[1], "", 1) == 1);
        check(read(p[0], &c, 1) == 1 && c == '!');
        _exit(0);
    }
    while (read(report[0], &c, 1) != 1)
        sleep_ms(1);
    do { // it may not read yet
        check(kill(child, SIGUSR1) == 0);
        sleep_ms(5);
    } while (read(report[0], &c, 1) != 1);
    for (int i = 0; i < 10; i++) {
        sleep_ms(5);
        check(kill(child, SIGUSR1) == 0);
    }
    check(write(p[1], "!", 1) == 1);
    check(waitpid(child, &status, 0) == child && status == 0);
    close(p[0]);
    close(p[1]);
    close(report[0]);
    close(report[1]);
    ok("a signal interrupts or restarts a read");
}

static void fifos(void)
{
    char buf[8];
    int status;
    check(mkfifo("fifo", 0600) == 0);
    check_error(mkfifo("fifo", 0600), EEXIST);
    check_error(open("fifo", O_WRONLY | O_NONBLOCK), ENXIO);
    int r = open("fifo", O_RDONLY | O_NONBLOCK);
    check(r >= 0 && read(r, buf, 1) == 0);
    int w = open("fifo", O_WRONLY | O_NONBLOCK);
    check(w >= 0 && write(w, "hi", 2) == 2 && read(r, buf, 8) == 2);
    check_error(read(r, buf, 8), EAGAIN);
    close(w);
    check(read(r, buf, 8) == 0);
    close(r);

    pid_t child = fork();
    if (child == 0) {
        w = open("fifo", O_WRONLY); // waits for a reader
        check(w >= 0 && write(w, "late", 4) == 4);
        _exit(0);
    }
    sleep_ms(50);
    check(waitpid(child, &status, WNOHANG) == 0);
    r = open("fifo", O_RDONLY);
    check(r >= 0 && read(r, buf, 8) == 4 && !memcmp(buf, "late", 4));
    check(read(r, buf, 8) == 0);
    close(r);
    check(waitpid(child, &status, 0) == child && status == 0);
    int both = open("fifo", O_RDWR);
    check(both >= 0 && write(both, "x", 1) == 1 && read(both, buf, 8) == 1);
    check(unlink("fifo") == 0);
    check(write(both, "y", 1) == 1 && read(both, buf, 8) == 1);
    close(both);
    ok("fifos");
}

int main(void)
{
    char dir[] = "/tmp/fs_pipe.XXXXXX";
    alarm(TEST_SECONDS);
    check(mkdtemp(dir) && chdir(dir) == 0);
    basics();
    full();
    broken();
    atomic();
    stream();
    ping_pong();
    interrupted();
    fifos();
    check(chdir("/") == 0 && rmdir(dir) == 0);
    return 0;
}
