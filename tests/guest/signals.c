// Signals: handlers, masks, restarting, waiting, the alternate stack.
#include "spans.h"
#include "test.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>

static volatile int count, last, depth, deepest;

static void counting(int signal)
{
    count++;
    last = signal;
}

static sigset_t set_of(int signal)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    return set;
}

static void handlers(void)
{
    count = 0;
    on_signal(SIGUSR1, counting, 0);
    check(kill(getpid(), SIGUSR1) == 0 && count == 1 && last == SIGUSR1);
    check(raise(SIGUSR1) == 0 && count == 2);
    check(syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1) == 0 && count == 3);
    check(syscall(SYS_tkill, getpid(), SIGUSR1) == 0 && count == 4);
    check(kill(getpid(), 0) == 0 && count == 4);
    on_signal(SIGUSR1, SIG_IGN, 0);
    check(kill(getpid(), SIGUSR1) == 0 && count == 4);
    check_error(kill(getpid(), 65), EINVAL);
    check_error(kill(getpid(), -1), EINVAL);
    check_error(syscall(SYS_tgkill, getpid(), 0, SIGUSR1), EINVAL);
    check_error(syscall(SYS_tgkill, getpid(), 1 << 22, SIGUSR1), ESRCH);
    struct sigaction action = { .sa_handler = counting };
    check_error(sigaction(SIGKILL, &action, NULL), EINVAL);
    check_error(sigaction(SIGSTOP, &action, NULL), EINVAL);
    check(sigaction(SIGKILL, NULL, &action) == 0);
    ok("handlers");
}

static void blocking(void)
{
    sigset_t set = set_of(SIGUSR1), old, pending, all;

    count = 0;
    on_signal(SIGUSR1, counting, 0);
    check(sigprocmask(SIG_BLOCK, &set, &old) == 0);
    check(!sigismember(&old, SIGUSR1));
    for (int i = 0; i < 3; i++)
        check(kill(getpid(), SIGUSR1) == 0);
    check(count == 0);
    check(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1));
    check(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
    check(count == 1); // pending once, however often sent
    check(sigpending(&pending) == 0 && !sigismember(&pending, SIGUSR1));

    check(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    check(kill(getpid(), SIGUSR1) == 0);
    on_signal(SIGUSR1, SIG_IGN, 0); // ignoring discards what is pending
    on_signal(SIGUSR1, counting, 0);
    check(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
    check(count == 1);

    sigfillset(&all);
    check(sigprocmask(SIG_SETMASK, &all, &old) == 0);
    check(sigprocmask(SIG_SETMASK, &old, &all) == 0);
    check(!sigismember(&all, SIGKILL) && !sigismember(&all, SIGSTOP));
    check(sigismember(&all, SIGTERM));
    check_error(syscall(SYS_rt_sigprocmask, 77, &set, NULL, 8), EINVAL);
    check_error(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 4), EINVAL);
    ok("blocking");
}

static void nesting(int signal)
{
    depth++;
    deepest = depth > deepest ? depth : deepest;
    if (count++ == 0)
        raise(signal);
    depth--;
}

static void mask_of_handler(void)
{
    count = deepest = 0;
    on_signal(SIGUSR1, nesting, 0);
    raise(SIGUSR1);
    check(count == 2 && deepest == 1); // blocked in its own handler
    count = 0;
    on_signal(SIGUSR1, nesting, SA_NODEFER);
    raise(SIGUSR1);
    check(count == 2 && deepest == 2);

    count = 0;
    struct sigaction action = { .sa_handler = counting,
                                .sa_flags = SA_RESETHAND };
    check(sigaction(SIGUSR2, &action, NULL) == 0);
    raise(SIGUSR2);
    check(count == 1);
    check(sigaction(SIGUSR2, NULL, &action) == 0);
    check(action.sa_handler == SIG_DFL);
    ok("SA_NODEFER, SA_RESETHAND");
}

static volatile siginfo_t seen;

static void informed(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    seen = *info;
    count++;
}

static void information(void)
{
    struct sigaction action = { .sa_sigaction = informed,
                                .sa_flags = SA_SIGINFO };
    union sigval value = { .sival_int = 4711 };

    check(sigaction(SIGUSR1, &action, NULL) == 0);
    check(kill(getpid(), SIGUSR1) == 0);
    check(seen.si_signo == SIGUSR1 && seen.si_code == SI_USER);
    check(seen.si_pid == getpid() && seen.si_uid == getuid());
    check(syscall(SYS_tkill, getpid(), SIGUSR1) == 0);
    check(seen.si_code == SI_TKILL && seen.si_pid == getpid());
    check(sigqueue(getpid(), SIGUSR1, value) == 0);
    check(seen.si_code == SI_QUEUE && seen.si_value.sival_int == 4711);
    ok("siginfo");
}

static volatile int *alarms; // taken by the parent; shared with its children

static void counting_alarms(int signal)
{
    (void)signal;
    ++*alarms;
}

// SIGALRM every 20 ms: the first may arrive before the call that it is to
// interrupt.
static void keep_sending(void)
{
    struct itimerval timer = { { 0, 20000 }, { 0, 20000 } };

    check(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void stop_sending(void)
{
    struct itimerval off = { 0 };

    check(setitimer(ITIMER_REAL, &off, NULL) == 0);
}

// A child that waits until the parent has been interrupted a few times, and
// then writes a byte.
static pid_t late_child(int fd)
{
    *alarms = 0;
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        while (*alarms < 4)
            sleep_ms(5);
        check(write(fd, "x", 1) == 1);
        _exit(0);
    }
    return child;
}

static void restarting(void)
{
    int fds[2];
    char byte;

    alarms = mmap(NULL, sizeof(*alarms), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(alarms != MAP_FAILED && pipe(fds) == 0);
    on_signal(SIGALRM, counting_alarms, 0);
    keep_sending();
    check_error(read(fds[0], &byte, 1), EINTR);
    stop_sending();

    on_signal(SIGALRM, counting_alarms, SA_RESTART);
    pid_t child = late_child(fds[1]);
    keep_sending();
    check(read(fds[0], &byte, 1) == 1 && byte == 'x'); // restarted after it
    stop_sending();
    check(waitpid(child, NULL, 0) == child);

    child = late_child(fds[1]);
    keep_sending();
    check(waitpid(child, NULL, 0) == child); // restarts too
    stop_sending();
    close(fds[0]);
    close(fds[1]);

    struct timespec time = { 500, 0 }, left = { 0, 0 };
    keep_sending();
    check_error(nanosleep(&time, &left), EINTR); // a handler always ends it
    stop_sending();
    check(left.tv_sec > 0 && left.tv_sec < 500);
    alarm(TEST_SECONDS);
    ok("EINTR and SA_RESTART");
}

static void suspending(void)
{
    sigset_t set = set_of(SIGUSR1), none, now;

    count = 0;
    on_signal(SIGUSR1, counting, 0);
    sigemptyset(&none);
    check(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    check(raise(SIGUSR1) == 0 && count == 0);
    check_error(sigsuspend(&none), EINTR);
    check(count == 1);
    check(sigprocmask(SIG_UNBLOCK, &set, &now) == 0);
    check(sigismember(&now, SIGUSR1)); // the mask is restored
    ok("sigsuspend");
}

static void waiting(void)
{
    sigset_t set = set_of(SIGUSR1);
    struct timespec short_time = { 0, 20000000 };
    siginfo_t info;

    count = 0;
    check(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    uint64_t start = now_ns();
    check_error(sigtimedwait(&set, &info, &short_time), EAGAIN);
    check(now_ns() - start >= 20000000);
    check(kill(getpid(), SIGUSR1) == 0);
    check(sigtimedwait(&set, &info, &short_time) == SIGUSR1);
    check(info.si_signo == SIGUSR1 && info.si_pid == getpid());
    pid_t parent = getpid(), child = fork();
    check(child >= 0);
    if (child == 0) {
        sleep_ms(30);
        kill(parent, SIGUSR1);
        _exit(0);
    }
    check(sigwaitinfo(&set, &info) == SIGUSR1 && info.si_pid == child);
    check(waitpid(child, NULL, 0) == child);
    check(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
    check(count == 0); // taken, not handled
    ok("sigtimedwait");
}

static char alternate[32768];
static volatile int was_on_alternate;

static void where_am_i(int signal)
{
    char here;
    stack_t now, other = { .ss_sp = alternate, .ss_size = 8192 };

    (void)signal;
    was_on_alternate =
        &here >= alternate && &here < alternate + sizeof(alternate);
    check(sigaltstack(NULL, &now) == 0);
    if (was_on_alternate) {
        check(now.ss_flags == SS_ONSTACK);
        check_error(sigaltstack(&other, NULL), EPERM);
    }
}

static void alternate_stack(void)
{
    stack_t stack = { .ss_sp = alternate, .ss_size = 100 }, old;

    check_error(sigaltstack(&stack, NULL), ENOMEM);
    stack.ss_size = sizeof(alternate);
    stack.ss_flags = 0x40;
    check_error(sigaltstack(&stack, NULL), EINVAL);
    stack.ss_flags = 0;
    check(sigaltstack(&stack, NULL) == 0);
    on_signal(SIGUSR1, where_am_i, SA_ONSTACK);
    raise(SIGUSR1);
    check(was_on_alternate);
    on_signal(SIGUSR1, where_am_i, 0);
    raise(SIGUSR1);
    check(!was_on_alternate);
    stack.ss_flags = SS_DISABLE;
    check(sigaltstack(&stack, &old) == 0 && old.ss_sp == alternate);
    on_signal(SIGUSR1, where_am_i, SA_ONSTACK);
    raise(SIGUSR1);
    check(!was_on_alternate);
    ok("sigaltstack");
}

static sigjmp_buf back;

static void jump(int signal)
{
    siglongjmp(back, signal);
}

static void jumping_out(void)
{
    sigset_t now;
    on_signal(SIGUSR1, jump, 0);
    for (volatile int i = 0; i < 100; i++) {
        if (sigsetjmp(back, 1) == 0) {
            raise(SIGUSR1);
            check(!"the jump did not happen");
        }
        check(sigprocmask(SIG_BLOCK, NULL, &now) == 0);
        check(!sigismember(&now, SIGUSR1));
    }
    ok("siglongjmp");
}

// Registers of all kinds survive a handler that uses them.
static void spoiling(int signal)
{
    volatile double x = signal;
    for (int i = 0; i < 10; i++)
        x = x * 1.5 + 1;
    count++;
}

static void registers_survive(void)
{
    struct itimerval timer = { { 0, 1000 }, { 0, 1000 } }, off = { 0 };
    int wrong = 0;

    count = 0;
    on_signal(SIGALRM, spoiling, SA_RESTART);
    check(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    while (count < 50) {
        int bad;
        __asm__ volatile("fldpi; fld1; fldl2e\n\t"
                         "mov $0x11111111, %%ebx\n\t"
                         "mov $0x22222222, %%esi\n\t"
                         "mov $0x33333333, %%edi\n\t"
                         "mov $0x44444444, %%edx\n\t"
                         "mov $20000, %%ecx\n"
                         "1: dec %%ecx; jnz 1b\n\t"
                         "cmp $0x11111111, %%ebx; jne 2f\n\t"
                         "cmp $0x22222222, %%esi; jne 2f\n\t"
                         "cmp $0x33333333, %%edi; jne 2f\n\t"
                         "cmp $0x44444444, %%edx; jne 2f\n\t"
                         "fldl2e; fucompp; fnstsw %%ax; and $0x4500, %%ax\n\t"
                         "cmp $0x4000, %%ax; jne 3f\n\t"
                         "fld1; fucompp; fnstsw %%ax; and $0x4500, %%ax\n\t"
                         "cmp $0x4000, %%ax; jne 3f\n\t"
                         "fldpi; fucompp; fnstsw %%ax; and $0x4500, %%ax\n\t"
                         "cmp $0x4000, %%ax; jne 3f\n\t"
                         "xor %%eax, %%eax; jmp 4f\n"
                         "2: fninit; mov $1, %%eax; jmp 4f\n"
                         "3: fninit; mov $2, %%eax\n"
                         "4:"
                         : "=a"(bad)
                         :
                         : "ebx", "ecx", "edx", "esi", "edi", "cc", "memory");
        wrong |= bad;
    }
    check(setitimer(ITIMER_REAL, &off, NULL) == 0);
    check(wrong == 0);
    alarm(TEST_SECONDS);
    ok("registers survive handlers");
}

// The FPU state in a signal frame: FXSAVE's image follows FSAVE's.
#define FXSAVE_OFFSET 112
#define FXSAVE_SIZE 512
#define MXCSR (FXSAVE_OFFSET + 24)
#define XMM6 (FXSAVE_OFFSET + 160 + 6 * 16)

static char image[FXSAVE_OFFSET + FXSAVE_SIZE + 16]
    __attribute__((aligned(16)));
static char *image_at; // where the handler moves it; NULL: not moved
static uint32_t mxcsr_bits;

static void change_fpu(int signal, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    char *saved = (char *)u->uc_mcontext.fpregs;
    float one = 1;

    (void)signal;
    (void)info;
    check(saved != NULL && (uintptr_t)saved % 16 == 0);
    for (int i = 0; i < 4; i++)
        memcpy(saved + XMM6 + i * sizeof(one), &one, sizeof(one));
    *(uint32_t *)(saved + MXCSR) |= mxcsr_bits;
    if (image_at == NULL)
        return;
    if (image_at >= image && image_at < image + sizeof(image))
        memcpy(image_at, saved, FXSAVE_OFFSET + FXSAVE_SIZE);
    u->uc_mcontext.fpregs = (void *)image_at;
}

// Whether the handler's changes to the frame reach the registers.
static bool fpu_changed(void)
{
    float before[4] = { 5, 6, 7, 8 }, after[4];
    pid_t self = getpid();
    long result;

    __asm__ volatile("movups %2, %%xmm6\n\t"
                     "int $0x80\n\t"
                     "movups %%xmm6, %1"
                     : "=a"(result), "=m"(after)
                     : "m"(before), "0"(SYS_kill), "b"(self), "c"(SIGUSR1)
                     : "memory");
    check(result == 0);
    return after[0] == 1 && after[1] == 1 && after[2] == 1 && after[3] == 1;
}

static void saved_fpu(void)
{
    struct sigaction a = { .sa_sigaction = change_fpu, .sa_flags = SA_SIGINFO };
    int status;

    check(sigaction(SIGUSR1, &a, NULL) == 0);
    check(fpu_changed()); // not moved
    image_at = image;
    check(fpu_changed());
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        image_at = (char *)16; // not mapped
        fpu_changed();
        _exit(0);
    }
    check(waitpid(pid, &status, 0) == pid && killed_by(status, SIGSEGV));
    if (on_strobe()) { // Linux ends the program
        image_at = image + 4;
        check(fpu_changed());
        image_at = NULL;
        mxcsr_bits = 0xffff0000; // reserved
        check(fpu_changed());
    }
    image_at = NULL;
    on_signal(SIGUSR1, SIG_DFL, 0);
    ok("a handler changes the FPU's registers");
}

static void broken_pipe(void)
{
    int fds[2];
    check(pipe(fds) == 0);
    close(fds[0]);
    count = 0;
    on_signal(SIGPIPE, counting, 0);
    check_error(write(fds[1], "x", 1), EPIPE);
    check(count == 1 && last == SIGPIPE);
    on_signal(SIGPIPE, SIG_DFL, 0);
    close(fds[1]);
    ok("SIGPIPE");
}

static void defaults(void)
{
    static const int killing[] = { SIGHUP,  SIGINT,    SIGQUIT, SIGILL,
                                   SIGABRT, SIGFPE,    SIGKILL, SIGSEGV,
                                   SIGPIPE, SIGALRM,   SIGTERM, SIGUSR1,
                                   SIGBUS,  SIGVTALRM, SIGPROF, SIGXCPU };
    static const int harmless[] = { SIGCHLD, SIGURG, SIGWINCH, SIGCONT };
    int status;

    for (size_t i = 0; i < sizeof(killing) / sizeof(int); i++) {
        pid_t pid = fork();
        check(pid >= 0);
        if (pid == 0) {
            signal(killing[i], SIG_DFL);
            raise(killing[i]);
            _exit(1);
        }
        check(waitpid(pid, &status, 0) == pid && killed_by(status, killing[i]));
    }
    for (size_t i = 0; i < sizeof(harmless) / sizeof(int); i++)
        check(raise(harmless[i]) == 0);
    ok("default actions");
}

static void stopping(void)
{
    static const int stops[] = { SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU };
    int status, fds[2];
    char byte;

    check(pipe(fds) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        setpgid(0, 0);
        on_signal(SIGCONT, counting, 0);
        count = 0;
        for (int printed = -1; printed < 4; sleep_ms(1)) {
            for (; printed < count; printed++)
                check(write(fds[1], "", 1) == 1);
        }
        _exit(count);
    }
    check(read(fds[0], &byte, 1) == 1);
    for (int i = 0; i < 4; i++) {
        check(kill(pid, stops[i]) == 0);
        check(waitpid(pid, &status, WUNTRACED) == pid);
        check(WIFSTOPPED(status) && WSTOPSIG(status) == stops[i]);
        check(kill(pid, SIGCONT) == 0);
        if (i < 3) { // the fourth ends it
            check(waitpid(pid, &status, WCONTINUED) == pid);
            check(WIFCONTINUED(status));
        }
        check(read(fds[0], &byte, 1) == 1); // it has taken SIGCONT
    }
    do {
        check(waitpid(pid, &status, 0) == pid);
    } while (WIFCONTINUED(status));
    check(exited_with(status, 4));

    pid = fork(); // a stopped process can be killed
    check(pid >= 0);
    if (pid == 0)
        for (;;)
            pause();
    check(kill(pid, SIGSTOP) == 0);
    check(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
    check(kill(pid, SIGTERM) == 0);
    check(kill(pid, SIGCONT) == 0);
    check(waitpid(pid, &status, 0) == pid && killed_by(status, SIGTERM));
    ok("stop and continue");
}

int main(void)
{
    alarm(TEST_SECONDS);
    handlers();
    blocking();
    mask_of_handler();
    information();
    restarting();
    suspending();
    waiting();
    alternate_stack();
    jumping_out();
    registers_survive();
    saved_fpu();
    broken_pipe();
    defaults();
    stopping();
    return 0;
}
