// Register state is private to a program: FPU, SSE and TLS survive switches,
// migrations, signals and fork. Invalid selectors and flags kill the program
// that set them and affect nothing else.
#include "test.h"

#include <asm/ldt.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>

#define THREADS 6
#define ROUNDS 4000

static __thread long own;
static volatile int wrong, handled;

// Uses the registers that the threads check.
static void on_alarm(int signal)
{
    (void)signal;
    float junk[4] = { 9, 9, 9, 9 };
    __asm__ volatile("movups %0, %%xmm5; fldpi; fstp %%st(0)" ::"m"(junk));
    handled++;
}

static void *compute(void *arg)
{
    long id = (long)arg;
    float in[4] = { id, id + .5f, id + .25f, id + .125f }, out[4];
    int push = 1000 + id, top = 0;
    own = id * ROUNDS;
    __asm__ volatile("fildl %0" ::"m"(push));
    for (int i = 0; i < ROUNDS; i++) {
        __asm__ volatile("movups %0, %%xmm5" ::"m"(in));
        for (volatile int spin = 0; spin < 300; spin++)
            ;
        if (i % 16 == 0)
            __asm__ volatile("int $0x80" ::"a"(158)); // sched_yield
        __asm__ volatile("movups %%xmm5, %0; fistl %1" : "=m"(out), "=m"(top));
        if (memcmp(in, out, sizeof(in)) != 0 || top != push ||
            own++ != id * ROUNDS + i)
            wrong++;
    }
    __asm__ volatile("fstp %st(0)");
    return NULL;
}

static void switches_and_signals(void)
{
    struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { 0 };
    pthread_t threads[THREADS];
    on_signal(SIGALRM, on_alarm, SA_RESTART);
    check(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (long i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, compute, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++)
        check(pthread_join(threads[i], NULL) == 0);
    check(setitimer(ITIMER_REAL, &never, NULL) == 0);
    check(wrong == 0 && handled > 0);
    on_signal(SIGALRM, SIG_DFL, 0);
    ok("FPU, SSE and TLS across switches and signals");
}

#define SIGNALS 3000

// The registers are saved to a signal frame, and restored from it, by threads
// that others interrupt in the middle: there are more threads than CPUs.
static void *signal_itself(void *arg)
{
    long id = (long)arg;
    float in[4] = { id, id + .5f, id + .25f, id + .125f }, out[4];
    pid_t pid = getpid(), tid = (pid_t)syscall(SYS_gettid);
    for (int i = 0; i < SIGNALS; i++) {
        int result;
        __asm__ volatile("movups %2, %%xmm5\n\t"
                         "int $0x80\n\t"
                         "movups %%xmm5, %1"
                         : "=a"(result), "=m"(out)
                         : "m"(in), "a"(SYS_tgkill), "b"(pid), "c"(tid),
                           "d"(SIGUSR1)
                         : "memory");
        if (result != 0 || memcmp(in, out, sizeof(in)) != 0)
            wrong++;
    }
    return NULL;
}

static void signals_to_itself(void)
{
    pthread_t threads[THREADS];
    handled = 0;
    on_signal(SIGUSR1, on_alarm, 0);
    for (long i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, signal_itself,
                             (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++)
        check(pthread_join(threads[i], NULL) == 0);
    check(wrong == 0 && handled > 0);
    on_signal(SIGUSR1, SIG_DFL, 0);
    ok("FPU and SSE across signals of many threads");
}

// The kernel's error and restart codes are plain numbers in user mode.
static void eax_across_signals(void)
{
    static const int values[] = { -1, -EINTR, -512, -513, -514, -4095, 7 };
    struct itimerval soon = { .it_value = { 0, 2000 } };
    on_signal(SIGALRM, on_alarm, SA_RESTART);
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        int after;
        handled = 0;
        check(setitimer(ITIMER_REAL, &soon, NULL) == 0);
        __asm__ volatile(
            "1: cmpl %[value], %%eax; jne 2f\n\t"
            "cmpl $0, %[handled]; je 1b\n\t"
            "2:"
            : "=a"(after)
            : "a"(values[i]), [value] "r"(values[i]), [handled] "m"(handled)
            : "cc", "memory");
        check(after == values[i]);
    }
    on_signal(SIGALRM, SIG_DFL, 0);
    ok("eax across signals");
}

static void across_fork(void)
{
    for (int i = 0; i < 20; i++) {
        float in[4] = { i, 2, 3, 4 }, out[4];
        int push = i * 3, top, pid, status;
        __asm__ volatile("movups %0, %%xmm6; fildl %1" ::"m"(in), "m"(push));
        __asm__ volatile("int $0x80" : "=a"(pid) : "a"(2) : "memory"); // fork
        __asm__ volatile("movups %%xmm6, %0; fistpl %1" : "=m"(out), "=m"(top));
        bool same = memcmp(in, out, sizeof(in)) == 0 && top == push;
        if (pid == 0)
            _exit(same ? 0 : 1);
        check(pid > 0 && waitpid(pid, &status, 0) == pid);
        check(same && exited_with(status, 0));
    }
    ok("FPU and SSE across fork");
}

// A handler that returns with a forbidden value in a register.
static enum {
    KERNEL_CODE,
    NULL_CODE,
    DATA_AS_CODE,
    KERNEL_STACK,
    NULL_STACK,
    CODE_AS_STACK,
    KERNEL_EIP,
    ALL_FLAGS,
} nonsense;

static void spoil(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    switch (nonsense) {
    case KERNEL_CODE:
        r[REG_CS] = 0x60;
        break;
    case NULL_CODE:
        r[REG_CS] = 0;
        break;
    case DATA_AS_CODE:
        r[REG_CS] = r[REG_SS];
        break;
    case KERNEL_STACK:
        r[REG_SS] = 0x68;
        break;
    case NULL_STACK:
        r[REG_SS] = 0;
        break;
    case CODE_AS_STACK:
        r[REG_SS] = r[REG_CS];
        break;
    case KERNEL_EIP:
        r[REG_EIP] = (greg_t)0xc0101000;
        break;
    case ALL_FLAGS: // all but TF
        r[REG_EFL] = ~0x100;
        break;
    }
}

static void return_to_nonsense(void)
{
    struct sigaction action = { .sa_sigaction = spoil, .sa_flags = SA_SIGINFO };
    check(sigaction(SIGUSR1, &action, NULL) == 0);
    raise(SIGUSR1);
    __asm__ volatile("cld");
    _exit(7);
}

static void bad_returns(void)
{
    for (nonsense = KERNEL_CODE; nonsense < ALL_FLAGS; nonsense++)
        check(killed_by(in_child(return_to_nonsense), SIGSEGV));
    ok("returns to bad selectors and addresses");
    // Flags that a program may not set are ignored.
    check(exited_with(in_child(return_to_nonsense), 7));
    ok("returns with bad flags");
}

static void far_call(void)
{
    __asm__ volatile("lcall $0x60, $0x1000");
}

static void call_task_gate(void)
{
    __asm__ volatile("lcall $0xf8, $0");
}

static void jump_to_task(void)
{
    __asm__ volatile("ljmp $0x80, $0");
}

static void return_to_kernel(void)
{
    __asm__ volatile("pushfl; pushl $0x60; pushl $1f; iretl; 1:");
}

static void return_from_nested_task(void)
{
    __asm__ volatile("pushfl; orl $0x4000, (%esp); popfl; iretl");
}

static void no_stack(void)
{
    __asm__ volatile("xorl %esp, %esp; pushl %eax");
}

static void forbidden_transfers(void)
{
    static void (*const ways[])(void) = {
        far_call,         call_task_gate,          jump_to_task,
        return_to_kernel, return_from_nested_task, no_stack,
    };
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
        check(killed_by(in_child(ways[i]), SIGSEGV));
    ok("no far transfer leads into the kernel");
}

// DF and NT do not disturb the kernel, and a system call preserves them.
static void flags_in_calls(void)
{
    int before = 0x4000 | 0x400, after;
    __asm__ volatile("pushfl; orl %1, (%%esp); popfl\n\t"
                     "movl $20, %%eax; int $0x80\n\t"
                     "pushfl; popl %0\n\t"
                     "pushl %0; andl $~0x4400, (%%esp); popfl"
                     : "=&r"(after)
                     : "r"(before)
                     : "eax", "memory");
    check((after & before) == before);
    ok("flags survive system calls");
}

// With a 16-bit stack segment the CPU would leave the upper half of the
// kernel's stack pointer in ESP.
static void narrow_segments(void)
{
    struct user_desc d = { .entry_number = -1,
                           .limit = 0xfffff,
                           .seg_32bit = 1,
                           .limit_in_pages = 1 };
    check(syscall(SYS_set_thread_area, &d) == 0);
    struct user_desc narrow = d, code = d, absent = d, none = d;
    narrow.seg_32bit = 0;
    code.contents = 2;
    absent.seg_not_present = 1;
    check_error(syscall(SYS_set_thread_area, &narrow), EINVAL);
    check_error(syscall(SYS_set_thread_area, &code), EINVAL);
    check_error(syscall(SYS_set_thread_area, &absent), EINVAL);
    long child = syscall(SYS_clone, CLONE_SETTLS | SIGCHLD, 0, 0, &narrow, 0);
    if (child == 0)
        _exit(0);
    check(child == -1 && errno == EINVAL);
    // All zeros free the entry.
    memset(&none, 0, sizeof(none));
    none.entry_number = d.entry_number;
    check(syscall(SYS_set_thread_area, &none) == 0);
    int entry = d.entry_number;
    d.entry_number = -1;
    check(syscall(SYS_set_thread_area, &d) == 0 &&
          (int)d.entry_number == entry);
    check(syscall(SYS_set_thread_area, &none) == 0);
    ok("no 16-bit segments");
}

int main(void)
{
    alarm(TEST_SECONDS);
    narrow_segments();
    across_fork();
    switches_and_signals();
    signals_to_itself();
    eax_across_signals();
    alarm(TEST_SECONDS);
    bad_returns();
    forbidden_transfers();
    flags_in_calls();
    return 0;
}
