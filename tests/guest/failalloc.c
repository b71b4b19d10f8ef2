// Fault injection for allocations: each operation is repeated in children whose
// 1st, 2nd, 3rd ... allocation in the kernel fails, up to the number that it
// makes. The operation works, or fails with an out-of-memory error, or the
// child is killed for lack of a page; the kernel survives and leaks nothing.
//
// With the name of a disk's partition that may be written it tests that
// alone: failalloc sata0p1.
//
// Only checked kernels have /dev/failalloc (docs/debugging.md); on others there
// is nothing to test. The leak check at power-off finds leaks, too.
#include "tests/guest/test.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>

#include "include/strobe/kbox.h"
#include "include/strobe/sensor.h"
#include "include/strobe/trace.h"
#include "user/libstrobe/strobe.h"

#define PAGE 4096u
#define ALLOCATIONS_MAX 3000 // more than any operation here makes
#define KEPT_MAX 256         // KiB of cache growth allowed in a round
#define ROUNDS 5             // a leak repeats each round, cache growth does not

// Descriptors of /dev/failalloc and of the pipe for the child's report, which
// survive an exec.
#define DEVICE_FD 100
#define REPORT_FD 101
#define REPORT_ARG "report"

// A child's exit status.
enum { WORKED, REFUSED, WRONG_ERROR, NOT_FIRED = 64 };

static const char *folder = "/tmp/failalloc";
static const char *disk = "none";

// An operation's result: success, or an error that means lack of memory.
static int outcome(bool worked)
{
    if (worked)
        return WORKED;
    switch (errno) {
    case ENOMEM:
    case EAGAIN:
    case ENOSPC:
    case ENFILE:
    case EMFILE:
    case ENOBUFS:
        return REFUSED;
    }
    dprintf(2, "errno %d: %s\n", errno, strerror(errno));
    return WRONG_ERROR;
}

static int reap(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return -1;
    }
    return status;
}

// --- operations: each in a child of its own ---------------------------------

static int do_fork(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    int result = outcome(pid > 0);
    if (pid > 0)
        reap(pid);
    return result;
}

static int do_vfork(void)
{
    pid_t pid = vfork();
    if (pid == 0) {
        execl("/bin/true", "true", NULL);
        _exit(127);
    }
    if (pid < 0)
        return outcome(false);
    return reap(pid) == 0 ? WORKED : WRONG_ERROR;
}

// The new program reports the result. After the point of no return exec cannot
// return an error, so the task dies.
static int do_exec(void)
{
    execl("/proc/self/exe", "failalloc", REPORT_ARG, NULL);
    return outcome(false);
}

static int do_exec_script(void)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/script", folder);
    execl(path, "script", NULL);
    return outcome(false);
}

static int do_map(void)
{
    char *p = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return outcome(false);
    p[0] = p[63 * PAGE] = 1;
    if (mprotect(p + 8 * PAGE, PAGE, PROT_READ) < 0 ||
        munmap(p + 20 * PAGE, 3 * PAGE) < 0)
        return outcome(false);
    p = mremap(p, 8 * PAGE, 200 * PAGE, MREMAP_MAYMOVE);
    if (p == MAP_FAILED)
        return outcome(false);
    p[199 * PAGE] = 1;
    return outcome(munmap(p, 200 * PAGE) == 0);
}

static int do_map_shared(void)
{
    char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return outcome(false);
    p[0] = p[3 * PAGE] = 1;
    return do_fork();
}

static int do_map_file(void)
{
    int fd = open("/bin/busybox", O_RDONLY);
    if (fd < 0)
        return outcome(false);
    char *p = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return outcome(false);
    p[0] = p[9 * PAGE] + 1;
    return outcome(munmap(p, 16 * PAGE) == 0 && close(fd) == 0);
}

static int do_pipe(void)
{
    static char data[3 * PAGE];
    int fds[2];
    if (pipe(fds) < 0)
        return outcome(false);
    ssize_t n = write(fds[1], data, sizeof(data));
    if (n < 0)
        return outcome(false);
    return outcome(read(fds[0], data, sizeof(data)) == n);
}

static int do_fifo(void)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/fifo.%d", folder, getpid());
    if (mkfifo(path, 0600) < 0)
        return outcome(false);
    int fd = open(path, O_RDWR);
    int result = outcome(fd >= 0 && write(fd, "x", 1) == 1);
    if (unlink(path) < 0)
        return outcome(false);
    return result;
}

static int do_files(void)
{
    static char data[5 * PAGE];
    char dir[64], from[100], to[100], link[100];
    snprintf(dir, sizeof(dir), "%s/dir.%d", folder, getpid());
    snprintf(from, sizeof(from), "%s/from", dir);
    snprintf(link, sizeof(link), "%s/link", dir);
    snprintf(to, sizeof(to), "%s/a-name-that-is-rather-long", dir);
    if (mkdir(dir, 0700) < 0)
        return outcome(false);
    int fd = open(from, O_CREAT | O_RDWR, 0600);
    if (fd < 0)
        return outcome(false);
    ssize_t n = write(fd, data, sizeof(data));
    if (n < 0)
        return outcome(false);
    if (pwrite(fd, data, 1, 3000 * PAGE) < 0 || close(fd) < 0 ||
        symlink(from, link) < 0)
        return outcome(false);
    if (rename(from, to) < 0 || unlink(link) < 0)
        return outcome(false);
    char *cwd = chdir(dir) < 0 ? NULL : getcwd(NULL, 0);
    return outcome(cwd != NULL);
}

static int do_proc(void)
{
    static char data[8 * PAGE];
    static const char *const paths[] = { "/proc/self/maps", "/proc/self/status",
                                         "/proc/stat",      "/proc/meminfo",
                                         "/proc/self/fd/0", "/dev/kmsg" };
    for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        int fd = open(paths[i], O_RDONLY | O_NONBLOCK);
        if (fd < 0 || read(fd, data, sizeof(data)) < 0 || close(fd) < 0)
            return outcome(false);
    }
    return WORKED;
}

static int do_poll(void)
{
    static struct pollfd polled[200];
    int fds[2];
    if (pipe(fds) < 0)
        return outcome(false);
    for (unsigned i = 0; i < 200; i++)
        polled[i] = (struct pollfd){ .fd = fds[0], .events = POLLIN };
    return outcome(poll(polled, 200, 1) == 0);
}

static int do_select(void)
{
    fd_set set;
    FD_ZERO(&set);
    int fds[2];
    if (pipe(fds) < 0 || dup2(fds[0], 500) < 0)
        return outcome(false);
    FD_SET(500, &set);
    struct timeval soon = { 0, 1000 };
    return outcome(select(501, &set, NULL, NULL, &soon) == 0);
}

// To itself. A datagram that finds no memory is lost.
static int do_socket(void)
{
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(5001) };
    char byte = 'x';
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return outcome(
        fd >= 0 && bind(fd, (struct sockaddr *)&own, sizeof(own)) == 0 &&
        sendto(fd, &byte, 1, 0, (struct sockaddr *)&own, sizeof(own)) == 1 &&
        recv(fd, &byte, 1, 0) == 1 && close(fd) == 0);
}

static void on_usr1(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info, (void)context;
}

static int do_signals(void)
{
    struct sigaction action = { .sa_sigaction = on_usr1,
                                .sa_flags = SA_SIGINFO };
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    if (sigaction(SIGUSR1, &action, NULL) < 0 ||
        sigprocmask(SIG_BLOCK, &set, NULL) < 0 || kill(getpid(), SIGUSR1) < 0 ||
        kill(getpid(), SIGUSR2) < 0 ||
        sigqueue(getpid(), SIGUSR1, (union sigval){ .sival_int = 7 }) < 0)
        return outcome(false);
    struct timespec soon = { 1, 0 };
    sigdelset(&set, SIGUSR1);
    int got = sigtimedwait(&set, NULL, &soon);
    if (got < 0)
        return outcome(false);
    sigaddset(&set, SIGUSR1);
    return outcome(got == SIGUSR2 && !sigprocmask(SIG_UNBLOCK, &set, NULL));
}

static void *in_thread(void *arg)
{
    volatile double x = 1.5; // uses the thread's FPU state
    x *= 3;
    return x > 4 ? arg : NULL;
}

static int do_threads(void)
{
    pthread_t t;
    int err = pthread_create(&t, NULL, in_thread, NULL);
    if (err) {
        errno = err;
        return outcome(false);
    }
    pthread_join(t, NULL);
    return WORKED;
}

static int do_terminal(void)
{
    struct termios modes;
    struct winsize size;
    int console = open("/dev/console", O_RDWR | O_NOCTTY);
    if (console < 0)
        return outcome(false);
    return outcome(tcgetattr(console, &modes) == 0 &&
                   tcsetattr(console, TCSANOW, &modes) == 0 &&
                   ioctl(console, TIOCGWINSZ, &size) == 0);
}

static int do_session(void)
{
    struct profile_session s = { 0 };
    struct sprofile_options options = { .size = sizeof(options),
                                        .rate_hz = 100,
                                        .ring_bytes = 1 };
    struct sprofile_info info;
    if (profile_begin(&s, getppid(), &options) < 0)
        return outcome(false);
    int result =
        outcome(profile_info(&s, &info) >= 0 && profile_request(&s) >= 0);
    profile_end(&s);
    return result;
}

// Without memory it leaves nothing: with its descriptor the name goes.
// With its rings, which are sensors.
static int do_trace(void)
{
    struct trace_options options = { .points = 1, .ring_bytes = 2 * PAGE };
    struct profile_session s = { 0 };
    if (profile_trace_begin(&s, &options) < 0)
        return outcome(false);
    profile_end(&s);
    return WORKED;
}

static int do_sensor(void)
{
    const char *path = "/sensors/failalloc";
    struct sensor_request r = { .layout = { .type = SENSOR_LIST,
                                            .list = { 256, 64 } } };
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (fd < 0)
        return outcome(false);
    int result = outcome(ioctl(fd, SENSOR_CREATE, &r) == 0);
    int error = errno;
    if (result == WORKED) {
        void *m = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                       SENSOR_DATA);
        result = outcome(m != MAP_FAILED);
        unlink(path);
    }
    close(fd);
    if (access(path, F_OK) == 0) {
        dprintf(2, "%s stays\n", path);
        return WRONG_ERROR;
    }
    errno = error;
    return result;
}

static int do_kernel_sensors(void)
{
    char text[256];
    int fd = open("/sensors/syscall/duration", O_RDONLY);
    return outcome(fd >= 0 && read(fd, text, sizeof(text)) > 0);
}

// Mounted and used; a child before this one may have been killed halfway.
static int do_disk(void)
{
    char path[64], file[80], renamed[80], data[PAGE];
    snprintf(path, sizeof(path), "%s/disk", folder);
    snprintf(file, sizeof(file), "%s/a new file", path);
    snprintf(renamed, sizeof(renamed), "%s/renamed", path);
    umount(path);
    mkdir(path, 0700);
    if (mount(disk, path, "vfat", 0, NULL) < 0)
        return outcome(false);
    memset(data, 'x', sizeof(data));
    int fd = open(file, O_CREAT | O_RDWR | O_TRUNC, 0600), result;
    result = outcome(fd >= 0 && write(fd, data, PAGE) == PAGE &&
                     fsync(fd) == 0 && pread(fd, data, PAGE, 0) == PAGE &&
                     rename(file, renamed) == 0 && unlink(renamed) == 0);
    close(fd);
    if (umount(path) < 0 && !result)
        result = outcome(false);
    return result;
}

static const struct operation {
    const char *name;
    int (*run)(void);
} operations[] = {
    { "fork", do_fork },
    { "vfork", do_vfork },
    { "exec", do_exec },
    { "exec of a script", do_exec_script },
    { "mmap, mprotect, munmap, mremap", do_map },
    { "shared memory across fork", do_map_shared },
    { "a private mapping of a file", do_map_file },
    { "pipe", do_pipe },
    { "fifo", do_fifo },
    { "files and directories", do_files },
    { "/proc", do_proc },
    { "poll", do_poll },
    { "select", do_select },
    { "a socket", do_socket },
    { "signals", do_signals },
    { "a thread", do_threads },
    { "terminal", do_terminal },
    { "a profile session", do_session },
    { "a trace", do_trace },
    { "a sensor", do_sensor },
    { "the kernel's sensors", do_kernel_sensors },
};
static const struct operation disk_operation = { "a disk", do_disk };

// --- the walk ---------------------------------------------------------------

static char where[700]; // the last child's failed allocation

static void report(int result)
{
    ssize_t length = read(DEVICE_FD, where, sizeof(where));
    check(length > 0);
    check(write(REPORT_FD, where, length) == length);
    _exit(strncmp(where, "not", 3) ? result : result | NOT_FIRED);
}

// In the child: runs the operation with its nth allocation failing.
static void attempt(const struct operation *op, int n)
{
    char text[32];
    snprintf(text, sizeof(text), "%d\n", n);
    check(write(DEVICE_FD, text, strlen(text)) > 0);
    report(op->run());
}

// False if the operation makes fewer than n allocations.
static bool survives(const struct operation *op, int n)
{
    int fds[2];
    check(pipe(fds) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        check(dup2(fds[1], REPORT_FD) == REPORT_FD);
        attempt(op, n);
    }
    close(fds[1]);
    int status = reap(pid);
    ssize_t length = read(fds[0], where, sizeof(where) - 1);
    where[length > 0 ? length : 0] = '\0';
    close(fds[0]);
    bool died = killed_by(status, SIGKILL) || killed_by(status, SIGSEGV) ||
                killed_by(status, SIGBUS);
    int result = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    bool fine = died || (result >= 0 && (result & ~NOT_FIRED) < WRONG_ERROR);
    if (!fine || (result == (NOT_FIRED | REFUSED))) {
        dprintf(1, "FAILED %s, allocation %d: status %#x, %s\n", op->name, n,
                status, where);
        _exit(1);
    }
    return died || !(result & NOT_FIRED);
}

static void clean_up(void)
{
    char line[96];
    snprintf(line, sizeof(line), "rm -rf %s/dir.* %s/fifo.*", folder, folder);
    check(system(line) == 0);
}

static long free_kib(void)
{
    char text[2048], *at;
    int fd = open("/proc/meminfo", O_RDONLY);
    check(fd >= 0);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    check(n > 0);
    text[n] = '\0';
    close(fd);
    check((at = strstr(text, "MemFree:")) != NULL);
    return atol(at + 8);
}

static int walk(const struct operation *op)
{
    int n = 1;
    while (survives(op, n))
        check(++n < ALLOCATIONS_MAX);
    clean_up();
    return n - 1;
}

// The script's interpreter is this program.
static void make_folder(void)
{
    char path[64], program[64], text[96];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    check(n > 0);
    program[n] = '\0';
    n = snprintf(text, sizeof(text), "#!%s " REPORT_ARG "\n", program);
    mkdir(folder, 0700);
    snprintf(path, sizeof(path), "%s/script", folder);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0700);
    check(fd >= 0 && write(fd, text, n) == n && !close(fd));
}

static void test(const struct operation *op)
{
    int n = walk(op); // fills the caches
    long kept = LONG_MAX;
    for (int round = 0; round < ROUNDS && kept > KEPT_MAX; round++) {
        long before = free_kib();
        n = walk(op);
        kept = before - free_kib();
    }
    if (kept > KEPT_MAX) {
        dprintf(1, "FAILED %s: %ld KiB are gone\n", op->name, kept);
        exit(1);
    }
    dprintf(1, "ok %s, without each of %d allocations\n", op->name, n);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], REPORT_ARG))
        report(WORKED);
    alarm(TEST_SECONDS);
    int device = open("/dev/failalloc", O_RDWR);
    if (device < 0) {
        ok("nothing to test: this kernel has no /dev/failalloc");
        return 0;
    }
    check(dup2(device, DEVICE_FD) == DEVICE_FD);
    make_folder();
    if (argc > 1) {
        disk = argv[1];
        test(&disk_operation);
        return 0;
    }
    for (unsigned i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        test(&operations[i]);
    return 0;
}
