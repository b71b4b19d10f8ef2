// Processes: fork, wait, groups and sessions, vfork, clone.
#include "test.h"

#include <limits.h>

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

static void exit_statuses(void)
{
    for (int code = 0; code < 256; code += 17) {
        int status;
        pid_t pid = fork();
        check(pid >= 0);
        if (pid == 0)
            _exit(code | 0x100); // only the low byte is reported
        check(waitpid(pid, &status, 0) == pid);
        check(exited_with(status, code));
    }
    ok("exit status");
}

static volatile int variable = 1;

static void memory_is_copied(void)
{
    int go[2], status;
    char byte;

    check(pipe(go) == 0);
    pid_t parent = getpid(), pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        check(getppid() == parent && getpid() != parent);
        check(read(go[0], &byte, 1) == 1);
        _exit(variable == 1 ? variable = 3 : 99);
    }
    variable = 2;
    check(write(go[1], "", 1) == 1);
    check(waitpid(pid, &status, 0) == pid);
    check(exited_with(status, 3));
    check(variable == 2);
    close(go[0]);
    close(go[1]);
    ok("fork copies memory");
}

static void waiting(void)
{
    int status;
    struct rusage usage;

    check_error(waitpid(-1, &status, 0), ECHILD);
    check_error(waitpid(1 << 22, &status, 0), ECHILD);
    check_error(wait4(-1, &status, 0x4000, NULL), EINVAL);

    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        pause();
        _exit(1);
    }
    check(waitpid(pid, &status, WNOHANG) == 0);
    check(kill(pid, SIGSTOP) == 0);
    check(waitpid(pid, &status, WUNTRACED) == pid);
    check(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    check(waitpid(pid, &status, WUNTRACED | WNOHANG) == 0); // reported once
    check(kill(pid, SIGCONT) == 0);
    check(waitpid(pid, &status, WCONTINUED) == pid);
    check(WIFCONTINUED(status));
    check(kill(pid, SIGKILL) == 0);
    check(wait4(pid, &status, 0, &usage) == pid);
    check(killed_by(status, SIGKILL));
    check_error(waitpid(pid, &status, 0), ECHILD);
    check_error(kill(pid, 0), ESRCH);
    check_error(waitpid(INT_MIN, &status, 0), ESRCH);
    check_error(kill(INT_MIN, 0), ESRCH);
    ok("wait4");
}

static void zombie_is_there(void)
{
    siginfo_t info;
    pid_t pid = fork();

    check(pid >= 0);
    if (pid == 0)
        _exit(5);
    memset(&info, 0, sizeof(info));
    check(waitid(P_PID, pid, &info, WEXITED | WNOWAIT) == 0);
    check(info.si_pid == pid && info.si_code == CLD_EXITED);
    check(info.si_status == 5 && info.si_signo == SIGCHLD);
    check(kill(pid, 0) == 0); // a zombie keeps its id
    check(waitpid(pid, NULL, 0) == pid);
    ok("zombie and waitid");
}

static void orphan_is_adopted(void)
{
    int pipe_fds[2];
    pid_t ids[2], child;

    check(pipe(pipe_fds) == 0);
    child = fork();
    check(child >= 0);
    if (child == 0) {
        ids[0] = getpid();
        if (fork() == 0) {
            while (getppid() == ids[0])
                sleep_ms(2);
            ids[1] = getppid();
            check(write(pipe_fds[1], ids, sizeof(ids)) == sizeof(ids));
        }
        _exit(0);
    }
    check(waitpid(child, NULL, 0) == child);
    check(read(pipe_fds[0], ids, sizeof(ids)) == sizeof(ids));
    check(ids[1] != child && ids[1] > 0);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    ok("an orphan gets a new parent");
}

static void groups(void)
{
    int status, ready[2];
    pid_t members[3];
    char byte;

    check(getpgid(0) == getpgrp());
    check_error(getpgid(1 << 22), ESRCH);
    check_error(setpgid(0, -1), EINVAL);
    check_error(setpgid(1 << 22, 0), ESRCH);
    check_error(kill(-(1 << 22), SIGTERM), ESRCH);

    check(pipe(ready) == 0);
    for (int i = 0; i < 3; i++) {
        members[i] = fork();
        check(members[i] >= 0);
        if (members[i] == 0) {
            check(setpgid(0, i == 0 ? 0 : members[0]) == 0);
            check(getpgrp() == (i == 0 ? getpid() : members[0]));
            check(write(ready[1], "", 1) == 1);
            for (;;)
                pause();
        }
        check(read(ready[0], &byte, 1) == 1);
    }
    check(getpgid(members[2]) == members[0]);
    check_error(waitpid(-(1 << 22), &status, 0), ECHILD);
    check(kill(-members[0], SIGTERM) == 0);
    for (int i = 0; i < 3; i++) {
        check(waitpid(-members[0], &status, 0) > 0);
        check(killed_by(status, SIGTERM));
    }
    check_error(waitpid(-members[0], &status, 0), ECHILD);
    close(ready[0]);
    close(ready[1]);
    ok("process groups");
}

// Forks all the time, as do its children; up to 200 run at once.
static void multiply(int *living)
{
    for (;;) {
        if (__sync_fetch_and_add(living, 1) >= 200) {
            __sync_fetch_and_sub(living, 1);
            sleep_ms(1);
            continue;
        }
        if (fork() == 0 && *living > 100) {
            __sync_fetch_and_sub(living, 1);
            _exit(0);
        }
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
}

// A signal to a group also reaches children that are being forked.
static void no_escape(void)
{
    int *living = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(living != MAP_FAILED);
    for (int round = 0; round < 5; round++) {
        *living = 0;
        pid_t leader = fork();
        check(leader >= 0);
        if (leader == 0) {
            setpgid(0, 0);
            multiply(living);
        }
        setpgid(leader, leader);
        sleep_ms(20);
        check(kill(-leader, SIGKILL) == 0);
        check(waitpid(leader, NULL, 0) == leader);
        // Init reaps the orphans soon; no new one appears.
        while (kill(-leader, 0) == 0)
            sleep_ms(10);
        check(errno == ESRCH);
    }
    check(munmap(living, 4096) == 0);
    ok("a killed group has no survivors");
}

static void lead_session(void)
{
    pid_t old = getsid(0);
    check(setsid() == getpid());
    check(getsid(0) == getpid() && getpgrp() == getpid());
    check(getsid(0) != old);
    check_error(setsid(), EPERM);
    check_error(setpgid(0, 0), EPERM);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0)
        _exit(getsid(0) == getppid() ? 0 : 1);
    int status;
    check(waitpid(child, &status, 0) == child && exited_with(status, 0));
}

static void sessions(void)
{
    check(exited_with(in_child(lead_session), 0));
    check_error(getsid(1 << 22), ESRCH);
    ok("sessions");
}

static void vforked(void)
{
    int status;
    variable = 0;
    pid_t pid = vfork();
    check(pid >= 0);
    if (pid == 0) {
        sleep_ms(20);
        variable = 42; // in the memory of the waiting parent
        _exit(7);
    }
    check(variable == 42);
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 7));

    pid = vfork();
    check(pid >= 0);
    if (pid == 0) {
        execl("/proc/self/exe", "process", "child", NULL);
        _exit(99);
    }
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 11));
    ok("vfork");
}

static int cloned(void *argument)
{
    *(volatile int *)argument = 5;
    return 6;
}

// The clone system call, which returns -errno: musl's clone refuses flags that
// the kernel accepts. The child calls cloned(&variable) on its own stack and
// exits with the result.
static pid_t clone_cloned(int flags, volatile pid_t *parent_tid,
                          volatile pid_t *child_tid)
{
    static _Alignas(16) void *stack[16384];
    void **top = stack + 16384 - 8; // the argument is 16-byte aligned
    pid_t pid;

    top[3] = (void *)cloned;
    top[4] = (void *)&variable;
    __asm__ volatile("int $0x80\n\t"
                     "testl %%eax, %%eax\n\t"
                     "jnz 1f\n\t"
                     "popl %%eax\n\t"
                     "call *%%eax\n\t"
                     "movl %%eax, %%ebx\n\t"
                     "movl %6, %%eax\n\t"
                     "int $0x80\n"
                     "1:"
                     : "=a"(pid)
                     : "0"(SYS_clone), "b"(flags), "c"(top + 3),
                       "d"(parent_tid), "D"(child_tid), "i"(SYS_exit)
                     : "memory");
    return pid;
}

static void clones(void)
{
    static volatile pid_t child_tid, parent_tid;
    int status;

    variable = 0;
    pid_t pid = clone_cloned(CLONE_VM | CLONE_VFORK | SIGCHLD, NULL, NULL);
    check(pid > 0);
    check(variable == 5);
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 6));

    variable = 0; // copied memory: the child's change is private
    pid = clone_cloned(SIGCHLD | CLONE_PARENT_SETTID, &parent_tid, NULL);
    check(pid > 0 && parent_tid == pid);
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 6));
    check(variable == 0);

    pid = clone_cloned(CLONE_VM | SIGCHLD | CLONE_CHILD_SETTID |
                           CLONE_CHILD_CLEARTID,
                       NULL, &child_tid);
    check(pid > 0);
    check(waitpid(pid, &status, 0) == pid);
    check(variable == 5 && child_tid == 0);

    check(clone_cloned(CLONE_THREAD | SIGCHLD, NULL, NULL) == -EINVAL);
    check(clone_cloned(CLONE_SIGHAND | SIGCHLD, NULL, NULL) == -EINVAL);
    ok("clone");
}

static void identities(void)
{
    check(getpid() == syscall(SYS_gettid));
    check(getuid() == geteuid() && getgid() == getegid());
    check_error(getgroups(-1, NULL), EINVAL);
    check(getpriority(PRIO_PROCESS, 0) == 0);
    check(setpriority(PRIO_PROCESS, 0, 5) == 0);
    check(getpriority(PRIO_PROCESS, 0) == 5);
    check(setpriority(PRIO_PROCESS, 0, 0) == 0);
    ok("identities and priority");
}

static void many_children(void)
{
    enum { AT_ONCE = 100, IN_A_ROW = 300 };
    int status, sum = 0;

    for (int i = 0; i < AT_ONCE; i++) {
        pid_t pid = fork();
        check(pid >= 0);
        if (pid == 0) {
            sleep_ms(i % 7);
            _exit(i);
        }
    }
    for (int i = 0; i < AT_ONCE; i++) {
        check(wait(&status) > 0 && WIFEXITED(status));
        sum += WEXITSTATUS(status);
    }
    check(sum == AT_ONCE * (AT_ONCE - 1) / 2);
    for (int i = 0; i < IN_A_ROW; i++) {
        pid_t pid = fork();
        check(pid >= 0);
        if (pid == 0)
            _exit(0);
        check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
    }
    check_error(wait(NULL), ECHILD);
    ok("many children");
}

static void ignored_children(void)
{
    on_signal(SIGCHLD, SIG_IGN, 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0)
        _exit(3);
    check_error(waitpid(pid, NULL, 0), ECHILD); // when it has ended
    on_signal(SIGCHLD, SIG_DFL, 0);
    ok("ignored children leave no zombies");
}

static volatile siginfo_t child_info;

static void on_child(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    child_info = *info;
}

static void child_signal(void)
{
    struct sigaction action = { .sa_sigaction = on_child,
                                .sa_flags = SA_SIGINFO };
    sigset_t blocked, old;

    check(sigaction(SIGCHLD, &action, NULL) == 0);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, &old);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0)
        _exit(9);
    sigdelset(&old, SIGCHLD);
    check_error(sigsuspend(&old), EINTR);
    check(child_info.si_signo == SIGCHLD && child_info.si_pid == pid);
    check(child_info.si_code == CLD_EXITED && child_info.si_status == 9);
    check(waitpid(pid, NULL, 0) == pid);
    sigprocmask(SIG_SETMASK, &old, NULL);
    on_signal(SIGCHLD, SIG_DFL, 0);
    ok("SIGCHLD");
}

static void shared_memory(void)
{
    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(shared != MAP_FAILED);
    for (int i = 0; i < 8; i++) {
        if (fork() == 0) {
            __sync_fetch_and_add(shared, i);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    check(*shared == 28);
    check(munmap(shared, 4096) == 0);
    ok("shared memory");
}

// Init is notified of a zombie whose parent ends and reaps it, even while no
// child of its own ends.
static void zombie_is_adopted(void)
{
    int ids[2];
    pid_t zombie, pid;
    siginfo_t info;
    struct utsname names;
    check(uname(&names) == 0 && pipe(ids) == 0);
    if (strcmp(names.sysname, "Strobe") != 0)
        return; // task 1 there may reap no children
    pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        zombie = fork();
        if (zombie == 0)
            _exit(0);
        check(waitid(P_PID, zombie, &info, WEXITED | WNOWAIT) == 0);
        check(write(ids[1], &zombie, sizeof(zombie)) == sizeof(zombie));
        _exit(0);
    }
    check(read(ids[0], &zombie, sizeof(zombie)) == sizeof(zombie));
    check(waitpid(pid, NULL, 0) == pid);
    while (kill(zombie, 0) == 0) // for ever if init is not notified
        sleep_ms(1);
    check(errno == ESRCH);
    close(ids[0]);
    close(ids[1]);
    ok("init reaps the children of who has ended");
}

// --- PR_SET_PDEATHSIG -------------------------------------------------------

static int out[2];

// Tells the pipe which signal it was.
static void on_parents_end(int signal)
{
    char byte = (char)signal;
    check(write(out[1], &byte, 1) == 1);
    _exit(0);
}

// Ends, and leaves a child that has asked for this signal.
static void leave_child(int signal)
{
    int ready[2];
    char byte;
    check(pipe(ready) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid > 0) {
        check(read(ready[0], &byte, 1) == 1);
        _exit(0);
    }
    on_signal(SIGUSR1, on_parents_end, 0);
    on_signal(SIGRTMIN, on_parents_end, 0);
    check(prctl(PR_SET_PDEATHSIG, signal) == 0);
    check(write(ready[1], "", 1) == 1);
    for (;;)
        pause();
}

static void by_signal(void)
{
    leave_child(SIGUSR1);
}

static void by_queued_signal(void)
{
    leave_child(SIGRTMIN);
}

static void killed(void)
{
    leave_child(SIGKILL);
}

// The write end is open as long as the child lives.
static int signal_after(void (*parent)(void))
{
    char byte = 0;
    check(pipe(out) == 0);
    check(exited_with(in_child(parent), 0));
    close(out[1]);
    check(read(out[0], &byte, 1) >= 0);
    close(out[0]);
    return byte;
}

static void another_user(void)
{
    int signal = -1;
    check(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    check(setresuid(-1, 1000, -1) == 0);
    check(prctl(PR_GET_PDEATHSIG, &signal) == 0 && signal == 0);
}

static void parents_end(void)
{
    int signal = -1;
    check(signal_after(by_signal) == SIGUSR1);
    check(signal_after(by_queued_signal) == SIGRTMIN);
    check(signal_after(killed) == 0);
    check(prctl(PR_SET_PDEATHSIG, SIGUSR2) == 0);
    check(prctl(PR_GET_PDEATHSIG, &signal) == 0 && signal == SIGUSR2);
    check(exited_with(in_child(another_user), 0));
    check_error(prctl(PR_SET_PDEATHSIG, 65), EINVAL);
    check_error(prctl(PR_GET_PDEATHSIG, (void *)8), EFAULT);
    ok("the parent's end sends the signal that was asked for");
}

int main(int argc, char *argv[])
{
    if (argc > 1 && strcmp(argv[1], "child") == 0)
        return 11;
    alarm(TEST_SECONDS);
    exit_statuses();
    memory_is_copied();
    waiting();
    zombie_is_there();
    orphan_is_adopted();
    zombie_is_adopted();
    groups();
    no_escape();
    sessions();
    vforked();
    clones();
    identities();
    many_children();
    ignored_children();
    child_signal();
    shared_memory();
    parents_end();
    return 0;
}
