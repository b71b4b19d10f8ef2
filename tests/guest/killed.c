// SIGKILL ends a thread in each call that waits, and in calls that take long.
// Also: a task cannot send another one a deadly signal by clone's exit signal.
#include "test.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#define FIFO "/tmp/killed.fifo"
#define LOCKED "/tmp/killed.locked"
#define MIB (1024u * 1024)
#define ATTEMPTS 20

static const char *data; // a file in memory
static int pipe_fds[2];

// ---- calls that wait

static void reads(void)
{
    char c;
    (void)!read(pipe_fds[0], &c, 1);
}

static void writes(void)
{
    static char buffer[MIB];
    (void)!write(pipe_fds[1], buffer, sizeof(buffer));
}

static void opens_to_read(void)
{
    open(FIFO, O_RDONLY);
}

static void opens_to_write(void)
{
    open(FIFO, O_WRONLY);
}

static void waits_for_child(void)
{
    if (fork() == 0)
        pause(); // killed below, with the group
    wait(NULL);
}

static void sleeps(void)
{
    sleep(1000);
}

static void pauses(void)
{
    pause();
}

static void suspends(void)
{
    sigset_t all;
    sigfillset(&all);
    sigsuspend(&all);
}

static void waits_for_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigwaitinfo(&set, NULL);
}

static void polls(void)
{
    poll(NULL, 0, -1);
}

static void selects(void)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipe_fds[0], &set);
    select(pipe_fds[0] + 1, &set, NULL, NULL, NULL);
}

static void waits_for_futex(void)
{
    static int word;
    syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL);
}

static void flocks(void)
{
    flock(open(LOCKED, O_RDWR), LOCK_EX);
}

static void locks_record(void)
{
    struct flock all = { .l_type = F_WRLCK };
    fcntl(open(LOCKED, O_RDWR), F_SETLKW, &all);
}

// The child, on the parent's stack, waits for ever.
static void vforks(void)
{
    if (vfork() == 0) {
        open(FIFO, O_RDONLY);
        _exit(0);
    }
}

static void vforks_twice(void)
{
    if (vfork() == 0) {
        vforks();
        _exit(0);
    }
}

static void *open_fifo(void *unused)
{
    opens_to_read();
    return unused;
}

static void joins(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, open_fifo, NULL);
    pthread_join(thread, NULL);
}

// The first thread ends; the other one waits uninterruptibly.
static void first_thread_ends(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, (void *(*)(void *))vforks, NULL);
    pthread_exit(NULL);
}

static const struct {
    const char *what;
    void (*call)(void);
} waiting[] = {
    { "read", reads },
    { "write", writes },
    { "open of a FIFO to read", opens_to_read },
    { "open of a FIFO to write", opens_to_write },
    { "wait", waits_for_child },
    { "nanosleep", sleeps },
    { "pause", pauses },
    { "sigsuspend", suspends },
    { "sigwaitinfo", waits_for_signal },
    { "poll", polls },
    { "select", selects },
    { "futex", waits_for_futex },
    { "flock", flocks },
    { "F_SETLKW", locks_record },
    { "vfork", vforks },
    { "vfork in a vfork", vforks_twice },
    { "pthread_join", joins },
    { "vfork by a thread", first_thread_ends },
};

// The task's state in /proc: R, S, D, Z.
static char state_of(pid_t pid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return 0;
    (void)!read(fd, line, sizeof(line) - 1);
    close(fd);
    char *end = strrchr(line, ')');
    return end ? end[2] : 0;
}

static void kill_waiting(void (*call)(void))
{
    int status, locked = open(LOCKED, O_CREAT | O_RDWR, 0644);
    struct flock all = { .l_type = F_WRLCK };
    check(locked >= 0 && flock(locked, LOCK_EX) == 0);
    check(fcntl(locked, F_SETLK, &all) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        setpgid(0, 0);
        call();
        pause();
    }
    setpgid(pid, pid);
    // Waits until it blocks. If it is not there yet, it is killed on its way.
    while (state_of(pid) == 'R')
        sleep_ms(1);
    sleep_ms(5);
    check(kill(pid, SIGKILL) == 0);
    check(waitpid(pid, &status, 0) == pid && killed_by(status, SIGKILL));
    kill(-pid, SIGKILL); // its remaining children
    close(locked);
}

// ---- calls that take long

static unsigned blocks_of(const char *file)
{
    struct stat st;
    check(stat(file, &st) == 0);
    return st.st_blocks;
}

static void write_much(void)
{
    static char buffer[MIB / 16];
    static struct iovec parts[512]; // 32 MiB
    for (unsigned i = 0; i < 512; i++)
        parts[i] = (struct iovec){ buffer, sizeof(buffer) };
    (void)!writev(open(data, O_WRONLY), parts, 512);
}

static void populate_much(void)
{
    int fd = open(data, O_RDWR);
    check(ftruncate(fd, 32 * MIB) == 0);
    mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
         0);
}

// Kills the call once the file has grown: the file must be incomplete. Retries
// if the kill came too late.
static void kill_in_long_call(void (*call)(void))
{
    bool stopped = false;
    for (int i = 0; i < ATTEMPTS && !stopped; i++) {
        close(open(data, O_CREAT | O_TRUNC | O_RDWR, 0644));
        pid_t pid = fork();
        check(pid >= 0);
        if (pid == 0) {
            call();
            pause();
        }
        while (blocks_of(data) == 0)
            sched_yield();
        check(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
        stopped = blocks_of(data) < 32 * MIB / 512;
    }
    unlink(data);
    check(stopped);
}

static void kill_in_long_read(void)
{
    enum { SIZE = 32 * MIB };
    bool stopped = false;
    volatile char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(p != MAP_FAILED);
    int zero = open("/dev/zero", O_RDONLY);
    for (int i = 0; i < ATTEMPTS && !stopped; i++) {
        p[0] = p[SIZE - 1] = 1;
        pid_t pid = fork();
        check(pid >= 0);
        if (pid == 0) {
            (void)!read(zero, (void *)p, SIZE);
            pause();
        }
        while (p[0])
            sched_yield();
        check(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
        stopped = p[SIZE - 1];
    }
    close(zero);
    munmap((void *)p, SIZE);
    check(stopped);
}

// ---- exit signals

static pid_t clone_with(int flags)
{
    return syscall(SYS_clone, flags, 0, 0, 0, 0);
}

static volatile sig_atomic_t child_signals, user_signals;

static void count(int signal)
{
    if (signal == SIGCHLD)
        child_signals++;
    else
        user_signals++;
}

// A child makes a sibling whose exit signal is to kill this process.
static void sibling_cannot_kill(void)
{
    int status, fds[2];
    pid_t sibling;
    check(pipe(fds) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        sibling = clone_with(CLONE_PARENT | SIGKILL);
        if (sibling == 0)
            _exit(3);
        check(write(fds[1], &sibling, sizeof(sibling)) == sizeof(sibling));
        _exit(0);
    }
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
    check(read(fds[0], &sibling, sizeof(sibling)) == sizeof(sibling));
    check(waitpid(sibling, &status, __WALL) == sibling);
    check(exited_with(status, 3));
    close(fds[0]);
    close(fds[1]);
    ok("a sibling ends with its creator's signal");
}

static void exec_resets_exit_signal(const char *self)
{
    int status;
    on_signal(SIGCHLD, count, 0);
    on_signal(SIGUSR1, count, 0);
    pid_t pid = clone_with(SIGUSR1);
    check(pid >= 0);
    if (pid == 0)
        _exit(0);
    check(waitpid(pid, &status, __WALL) == pid);
    check(user_signals == 1 && child_signals == 0);
    pid = clone_with(SIGUSR1);
    check(pid >= 0);
    if (pid == 0) {
        execl(self, self, "end", NULL);
        _exit(1);
    }
    check(waitpid(pid, &status, __WALL) == pid && exited_with(status, 0));
    check(user_signals == 1 && child_signals == 1);
    // Here the parent has called exec, not the child.
    pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        int fds[2];
        check(pipe(fds) == 0);
        if (clone_with(SIGKILL) == 0) {
            char c;
            close(fds[1]);
            (void)!read(fds[0], &c, 1); // until its parent has called exec
            _exit(0);
        }
        fcntl(fds[1], F_SETFD, FD_CLOEXEC);
        execl(self, self, "wait", NULL);
        _exit(1);
    }
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
    ok("exec makes SIGCHLD of any exit signal");
}

int main(int argc, char *argv[])
{
    alarm(TEST_SECONDS);
    if (argc > 1)
        return strcmp(argv[1], "wait") == 0 ? waitpid(-1, NULL, __WALL) < 0 : 0;
    data =
        access("/dev/shm", W_OK) == 0 ? "/dev/shm/killed" : "/tmp/killed.data";
    unlink(FIFO);
    check(mkfifo(FIFO, 0600) == 0);
    check(pipe(pipe_fds) == 0);
    for (size_t i = 0; i < sizeof(waiting) / sizeof(*waiting); i++) {
        kill_waiting(waiting[i].call);
        ok(waiting[i].what);
    }
    kill_in_long_call(write_much);
    ok("a long write");
    kill_in_long_call(populate_much);
    ok("MAP_POPULATE");
    kill_in_long_read();
    ok("a long read of /dev/zero");
    sibling_cannot_kill();
    exec_resets_exit_signal(argv[0]);
    unlink(FIFO);
    unlink(LOCKED);
    return 0;
}
