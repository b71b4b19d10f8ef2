// Per-task system call counters: calls and errors, also when signals interrupt
// the calls.
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "user/libstrobe/sysinfo.h"

#define OFTEN_US 5000

static struct sysinfo_syscall counts(uint32_t number)
{
    struct sysinfo_syscall found = { 0 }, *all;
    char path[SYSINFO_PATH_MAX];
    size_t n;

    snprintf(path, sizeof(path), "system.tasks.%d.syscalls", (int)getpid());
    all = sysinfo_read_syscall(path, &n);
    check(all != NULL);
    for (size_t i = 0; i < n; i++) {
        if (all[i].number == number)
            found = all[i];
    }
    free(all);
    return found;
}

// Since `before`, the call was made `count` times, of which `errors` failed.
static bool grew(uint32_t number, struct sysinfo_syscall before, uint64_t count,
                 uint64_t errors)
{
    struct sysinfo_syscall now = counts(number);

    return now.count - before.count == count &&
           now.errors - before.errors == errors;
}

static volatile int *handled; // shared with children

static void on_any(int signal)
{
    (void)signal;
    ++*handled;
}

// A periodic timer: its first signal may arrive before the call that it is to
// interrupt.
static void alarms(int flags)
{
    struct itimerval often = { { 0, OFTEN_US }, { 0, OFTEN_US } };

    on_signal(SIGALRM, on_any, flags);
    *handled = 0;
    check(setitimer(ITIMER_REAL, &often, NULL) == 0);
}

static void no_alarms(void)
{
    check(setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL) == 0);
}

static void plain(void)
{
    struct sysinfo_syscall parent = counts(SYS_getppid),
                           shut = counts(SYS_close);

    for (int i = 0; i < 100; i++)
        syscall(SYS_getppid);
    check(grew(SYS_getppid, parent, 100, 0));
    for (int i = 0; i < 7; i++)
        check_error(syscall(SYS_close, -1), EBADF);
    check(grew(SYS_close, shut, 7, 7));
    ok("calls and errors are counted");
}

static void interrupted(void)
{
    struct sysinfo_syscall waits = counts(SYS_poll);
    struct sysinfo_syscall back = counts(SYS_sigreturn);

    alarms(0);
    check_error(poll(NULL, 0, -1), EINTR);
    no_alarms();
    check(*handled >= 1);
    check(grew(SYS_poll, waits, 1, 1));
    check(grew(SYS_sigreturn, back, *handled, 0));
    ok("an interrupted call is an error, the return from the handler is none");
}

static void restarted(void)
{
    struct sysinfo_syscall reads, back = counts(SYS_sigreturn);
    int ends[2], status;
    char byte;

    check(pipe(ends) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        while (*handled < 5)
            usleep(OFTEN_US);
        check(write(ends[1], "x", 1) == 1);
        _exit(0);
    }
    reads = counts(SYS_read);
    alarms(SA_RESTART);
    check(read(ends[0], &byte, 1) == 1);
    no_alarms();
    uint64_t tries = counts(SYS_read).count - reads.count;
    check(tries > 1 && tries <= 1u + *handled);
    check(grew(SYS_read, reads, tries, 0));
    check(grew(SYS_sigreturn, back, *handled, 0));
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
    close(ends[0]);
    close(ends[1]);
    ok("a call that is run again has not failed");
}

static void with_its_own_signal(void)
{
    struct sysinfo_syscall writes = counts(SYS_write);
    struct sysinfo_syscall back = counts(SYS_sigreturn);
    int ends[2];

    on_signal(SIGPIPE, on_any, 0);
    check(pipe(ends) == 0 && close(ends[0]) == 0);
    check_error(write(ends[1], "x", 1), EPIPE);
    close(ends[1]);
    check(grew(SYS_write, writes, 1, 1));
    check(grew(SYS_sigreturn, back, 1, 0));
    ok("an error that brings a signal with it is one of its call");
}

int main(void)
{
    if (sysinfo_get_type("system.tasks") < 0) {
        ok("(only Strobe counts calls)");
        return 0;
    }
    handled = mmap(NULL, sizeof(*handled), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(handled != MAP_FAILED);
    plain();
    interrupted();
    restarted();
    with_its_own_signal();
    return 0;
}
