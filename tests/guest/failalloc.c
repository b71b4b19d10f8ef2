// Fault injection for allocations: each operation is repeated in children whose
// 1st, 2nd, 3rd ... allocation in the kernel fails, up to the number that it
// makes. The operation works, or fails with an out-of-memory error, or the
// child is killed for lack of a page; the kernel survives and leaks nothing.
//
// With the name of a disk's partition that may be written it tests that
// alone: failalloc sata0p1. With `tools N` it tests every Nth allocation of
// Strobe's own tools, which then end with an error, and leave no session.
//
// Only checked kernels have /dev/failalloc (docs/debugging.md); on others there
// is nothing to test. The leak check at power-off finds leaks, too.
#include "tests/guest/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <termios.h>
#include <time.h>

#include "include/strobe/calls.h"
#include "include/strobe/kbox.h"
#include "include/strobe/sensor.h"
#include "include/strobe/trace.h"
#include "user/libstrobe/ipc.h"
#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

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
    case ENOLCK: // fcntl's
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

static int with_sensor(const struct sensor_layout *layout)
{
    const char *path = "/sensors/failalloc";
    struct sensor_request r = { .layout = *layout };
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

static int do_sensor(void)
{
    return with_sensor(
        &(struct sensor_layout){ .type = SENSOR_LIST, .list = { 256, 64 } });
}

static int do_kernel_sensors(void)
{
    char text[256];
    int fd = open("/sensors/syscall/duration", O_RDONLY);
    return outcome(fd >= 0 && read(fd, text, sizeof(text)) > 0);
}

static int session_of(struct sprofile_options *options)
{
    struct profile_session s = { 0 };
    struct sprofile_info info;
    options->size = sizeof(*options);
    options->rate_hz = 100;
    options->ring_bytes = 1;
    if (profile_begin_system(&s, options) < 0)
        return outcome(false);
    int result =
        outcome(profile_info(&s, &info) >= 0 && profile_request(&s) >= 0);
    profile_end(&s);
    return result;
}

static int do_session_of_points(void)
{
    struct sprofile_options options = { .flags =
                                            SPROFILE_O_STACKS | SPROFILE_O_DEEP,
                                        .source = SPROFILE_POINT_SOURCE,
                                        .event = "sched/switch" };
    return session_of(&options);
}

static int do_session_of_machine(void)
{
    struct sprofile_options options = { .flags = SPROFILE_O_STACKS };
    return session_of(&options);
}

static int do_counts(void)
{
    struct sprofile_count_options options = {
        .size = sizeof(options),
        .flags = SPROFILE_O_CHILDREN,
        .events = 3,
        .event = { "task-clock", "context-switches", "cycles" },
    };
    struct sprofile_counts counts;
    struct profile_session s = { 0 };
    if (profile_count_begin(&s, getppid(), &options) < 0)
        return outcome(false);
    int result = outcome(profile_count_read(&s, &counts) == 0);
    profile_end(&s);
    return result;
}

// Its code is patched: all of it is as before when it failed.
static int do_calls(void)
{
    struct calls_options options = { .size = sizeof(options),
                                     .mode = CALLS_PATHS,
                                     .entries = 256,
                                     .function_count = CALLS_ALL };
    struct ipc_call call = { .method = IPC_M_SPROFILE_ALL,
                             .arg = { SPROFILE_M_CALLS_BEGIN,
                                      (uintptr_t)&options } };
    int phone = kbox_connect(getpid());
    int result = outcome(phone >= 0 && ipc_request(phone, &call) == 0);
    if (phone >= 0)
        close(phone);
    return result;
}

static int do_flight(void)
{
    static char buffer[1 << 19];
    struct trace_options options = { .points = 7,
                                     .ring_bytes = 2 * PAGE,
                                     .flight_ms = 1000 };
    struct profile_session s = { 0 };
    if (profile_trace_begin(&s, &options) < 0)
        return outcome(false);
    int result =
        outcome(profile_trace_copy(&s, buffer, sizeof(buffer)) >= 0 &&
                profile_trace_request(&s, buffer, sizeof(buffer)) == 0);
    profile_end(&s);
    return result;
}

static int do_sensor_kinds(void)
{
    static const struct sensor_layout layouts[] = {
        { .type = SENSOR_SCALAR,
          .scalar = { .kind = SENSOR_COUNTER, .bits = 64 } },
        { .type = SENSOR_HISTOGRAM,
          .histogram = { .lanes = 2, .x = { .bins = 64, .width = 1 } } },
        { .type = SENSOR_RING, .ring = { .bytes = 8192 } },
    };
    int result = WORKED;
    for (unsigned i = 0; i < 3 && result == WORKED; i++)
        result = with_sensor(&layouts[i]);
    return result;
}

// Of each node, with the names of what is below it.
static int read_tree(const char *path)
{
    size_t size;
    char *keys = sysinfo_read_keys(path), below[200];
    if (!keys) {
        void *data = sysinfo_read_large(path, &size);
        free(data);
        return outcome(data);
    }
    int result = WORKED;
    for (char *key = keys; *key && result == WORKED; key += strlen(key) + 1) {
        snprintf(below, sizeof(below), "%s.%s", path, key);
        result = read_tree(below);
    }
    free(keys);
    return result;
}

static int do_sysinfo(void)
{
    return read_tree("system");
}

static int do_ipc(void)
{
    int box = ipc_box(), phone = ipc_connect(getpid());
    struct ipc_call call = { .method = IPC_M_USER }, got = { 0 };
    int result = outcome(box >= 0 && phone >= 0 && ipc_call(phone, &call) == 0);
    if (result == WORKED)
        result = outcome(ipc_answer_next(box, &got) == 0 &&
                         ipc_answer(box, got.id, 0) == 0 &&
                         ipc_wait(phone, &got, 1000) == 0);
    return result;
}

static int do_timers(void)
{
    timer_t timer;
    struct itimerspec soon = { .it_value = { 0, 1000 } };
    struct itimerval later = { .it_value = { 100, 0 } };
    signal(SIGALRM, SIG_IGN);
    return outcome(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0 &&
                   timer_settime(timer, 0, &soon, NULL) == 0 &&
                   setitimer(ITIMER_VIRTUAL, &later, NULL) == 0 &&
                   usleep(2000) == 0 && timer_delete(timer) == 0);
}

static int do_locks(void)
{
    struct flock lock = { .l_type = F_WRLCK, .l_start = 10, .l_len = 10 };
    char path[64];
    snprintf(path, sizeof(path), "%s/script", folder);
    int fd = open(path, O_RDWR);
    if (fd < 0 || fcntl(fd, F_SETLK, &lock) < 0)
        return outcome(false);
    lock.l_type = F_UNLCK;
    lock.l_start = 13, lock.l_len = 2; // splits it
    return outcome(fcntl(fd, F_SETLK, &lock) == 0 && flock(fd, LOCK_EX) == 0);
}

static int do_mounts(void)
{
    static const char *const kinds[] = { "tmpfs", "proc", "devtmpfs" };
    char path[64];
    snprintf(path, sizeof(path), "%s/dir.%d", folder, getpid());
    if (mkdir(path, 0700) < 0)
        return outcome(false);
    for (unsigned i = 0; i < 3; i++) {
        if (mount("none", path, kinds[i], 0, NULL) < 0)
            return outcome(false);
        int fd = open("/proc/mounts", O_RDONLY);
        char text[PAGE];
        bool is_read = fd >= 0 && read(fd, text, sizeof(text)) > 0;
        int error = errno;
        close(fd);
        if (umount(path) < 0)
            return WRONG_ERROR;
        errno = error;
        if (!is_read)
            return outcome(false);
    }
    return WORKED;
}

static int do_directories(void)
{
    static const char *const paths[] = { "/", "/dev", "/proc", "/proc/self/fd",
                                         "/sensors" };
    for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        DIR *d = opendir(paths[i]);
        if (!d)
            return outcome(false);
        errno = 0;
        while (readdir(d))
            ;
        if (errno != 0)
            return outcome(false);
        closedir(d);
    }
    return WORKED;
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
    { "sensors of all kinds", do_sensor_kinds },
    { "a session of the machine", do_session_of_machine },
    { "a session of a trace point", do_session_of_points },
    { "counts", do_counts },
    { "a trace of calls", do_calls },
    { "a flight", do_flight },
    { "sysinfo", do_sysinfo },
    { "calls of ipc", do_ipc },
    { "timers", do_timers },
    { "locks of files", do_locks },
    { "mounts", do_mounts },
    { "directories", do_directories },
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

// --- tools ------------------------------------------------------------------

// Of a tool only its status is known, not whether an allocation has failed: so
// many runs that work are behind its last allocation.
#define WORKING_MAX 8
#define WORDS_MAX 16

static char *const tools[][WORDS_MAX] = {
    { "profile", "-g", "-o", "/tmp/failalloc/f", "true" },
    { "profile", "stat", "true" },
    { "sprofile", "-o", "/tmp/failalloc/f", "true" },
    { "cprofile", "-F", "sys_*", "-o", "/tmp/failalloc/f", "true" },
    { "graph", "-F", "sys_read", "true" },
    { "trace", "record", "-e", "sched,syscall", "-o", "/tmp/failalloc/f",
      "true" },
    { "sensors", "record", "-o", "/tmp/failalloc/f", "/sensors/mm/free",
      "/sensors/syscall/duration", "--", "true" },
    { "sensors" },
    { "top", "-b", "-n", "1", "-d", "0.1" },
    { "tasks", "-a" },
    { "stats", "--audit" },
    { "sysinfo", "system" },
};

// The tool ends by itself, with an error or without, or for lack of a page.
static int run_tool(char *const words[], int n)
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        char text[32];
        int null = open("/dev/null", O_RDWR);
        check(null >= 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2);
        snprintf(text, sizeof(text), "%d\n", n);
        check(write(DEVICE_FD, text, strlen(text)) > 0);
        close(DEVICE_FD);
        execvp(words[0], words);
        _exit(127);
    }
    int status = reap(pid);
    if (WIFSIGNALED(status) && !killed_by(status, SIGKILL) &&
        !killed_by(status, SIGSEGV) && !killed_by(status, SIGBUS)) {
        dprintf(1, "FAILED %s %s, allocation %d: status %#x\n", words[0],
                words[1] ? words[1] : "", n, status);
        exit(1);
    }
    return status;
}

static bool is_measured(void)
{
    struct sysinfo_text text;
    size_t sessions = 1, traces = 1;
    free(sysinfo_read_session("system.profile.sessions", &sessions));
    free(sysinfo_read_trace("system.profile.traces", &traces));
    check(sysinfo_get_text("system.text", &text) == 0);
    return sessions || traces || text.patched;
}

// Without every `step`th of its allocations.
static void test_tool(char *const words[], int step)
{
    int failed = 0, last = 0;
    for (int n = 1, working = 0; working < WORKING_MAX; n += step) {
        check(n < ALLOCATIONS_MAX);
        working++;
        if (run_tool(words, n) != 0) {
            working = 0, last = n;
            failed++;
        }
    }
    check(failed > 0);
    // A sensor's points stay patched for some time.
    for (int i = 0; i < 100 && is_measured(); i++)
        usleep(100000);
    if (is_measured()) {
        dprintf(1, "FAILED %s leaves a session, or a patched place\n",
                words[0]);
        exit(1);
    }
    dprintf(1, "ok %s, without %d of its %d allocations\n", words[0], failed,
            last);
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
    if (argc > 2 && !strcmp(argv[1], "tools")) {
        for (unsigned i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
            test_tool(tools[i], atoi(argv[2]));
        return 0;
    }
    if (argc > 1) {
        disk = argv[1];
        test(&disk_operation);
        return 0;
    }
    for (unsigned i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        test(&operations[i]);
    return 0;
}
