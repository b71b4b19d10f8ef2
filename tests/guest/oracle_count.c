// Work of known numbers of instructions, for the oracle
// (tests/system/test_oracle_trees.py):
//
//     oracle_count user N         N turns of a loop of 2 instructions
//     oracle_count calls N        N times getpid
//     oracle_count interrupts N   until a timer has expired N times
//     oracle_count tree           known work behind each kind of jump
#include "test.h"

#include <sched.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/time.h>

// void NAME(unsigned n): 2 * n + 2 instructions.
#define WORK(name)                                       \
    void name(unsigned n);                               \
    __asm__(".pushsection .text\n"                       \
            ".type " #name ", @function\n" #name ":\n\t" \
            "movl 4(%esp), %ecx\n"                       \
            "1: decl %ecx\n\t"                           \
            "jnz 1b\n\t"                                 \
            "ret\n\t"                                    \
            ".size " #name ", . - " #name "\n\t"         \
            ".popsection")

WORK(work_user);
WORK(work_after_longjmp);
WORK(work_in_handler);
WORK(work_after_handler);
WORK(work_in_nested_handler);
WORK(work_after_jump_out);
WORK(work_of_tail_call);
WORK(work_after_tail_call);
WORK(work_in_thread);
WORK(work_before_exec);
WORK(work_after_exec);
WORK(work_after_vfork);
WORK(work_in_fork);

// void count_calls(unsigned n): 5 * n + 4 instructions.
void count_calls(unsigned n);
__asm__(".pushsection .text\n"
        ".type count_calls, @function\n"
        "count_calls:\n\t"
        "movl 4(%esp), %ecx\n"
        "1: movl $20, %eax\n\t" // getpid
        "int $0x80\n\t"
        "nop\n\t"
        "decl %ecx\n\t"
        "jnz 1b\n\t"
        "nop\n\t"
        "nop\n\t"
        "ret\n\t"
        ".size count_calls, . - count_calls\n\t"
        ".popsection");

// Calls by a jump: work_of_tail_call(1000) replaces this function's frame.
void tail_caller(unsigned n);
__asm__(".pushsection .text\n"
        ".type tail_caller, @function\n"
        "tail_caller:\n\t"
        "nop\n\t"
        "jmp work_of_tail_call\n\t"
        ".size tail_caller, . - tail_caller\n\t"
        ".popsection");

// --- an interrupt -----------------------------------------------------------

static volatile unsigned alarms;

static void on_alarm(int signal)
{
    (void)signal;
    alarms++;
}

static void interrupts(unsigned n)
{
    struct itimerval every = { { 0, 2000 }, { 0, 2000 } }, never = { 0 };
    on_signal(SIGALRM, on_alarm, 0);
    check(setitimer(ITIMER_REAL, &every, NULL) == 0);
    while (alarms < n)
        ;
    check(setitimer(ITIMER_REAL, &never, NULL) == 0);
    check(alarms == n);
}

// --- jumps ------------------------------------------------------------------

static jmp_buf back;

static volatile bool jumps = true;

__attribute__((noinline)) static void jumps_back(unsigned depth)
{
    if (depth > 0)
        jumps_back(depth - 1);
    if (jumps)
        longjmp(back, 1);
}

__attribute__((noinline)) static void tree_longjmp(void)
{
    for (volatile int i = 0; i < 10; i++) {
        if (setjmp(back) == 0)
            jumps_back(20);
        work_after_longjmp(1000);
    }
}

// --- signals ----------------------------------------------------------------

static void nested_handler(int signal)
{
    (void)signal;
    work_in_nested_handler(1000);
}

static void handler(int signal)
{
    (void)signal;
    work_in_handler(1000);
    check(raise(SIGUSR2) == 0);
    work_in_handler(1000);
}

static sigjmp_buf out;
static int *volatile nowhere = (int *)8;

static void jumping_handler(int signal)
{
    (void)signal;
    siglongjmp(out, 1);
}

__attribute__((noinline)) static void tree_signals(void)
{
    on_signal(SIGUSR1, handler, 0);
    on_signal(SIGUSR2, nested_handler, 0);
    on_signal(SIGSEGV, jumping_handler, 0);
    for (int i = 0; i < 10; i++) {
        check(raise(SIGUSR1) == 0);
        work_after_handler(1000);
    }
    for (volatile int i = 0; i < 10; i++) {
        if (sigsetjmp(out, 1) == 0)
            *nowhere = 0;
        work_after_jump_out(1000);
    }
}

__attribute__((noinline)) static void tree_tail_call(void)
{
    for (int i = 0; i < 10; i++) {
        tail_caller(1000);
        work_after_tail_call(1000);
    }
}

// --- tasks and threads ------------------------------------------------------

#define STACK_SIZE 65536
static char *stack;

static int thread(void *argument)
{
    (void)argument;
    work_in_thread(1000);
    return 0;
}

// In a task of its own, at the same address as in the others.
static void with_a_thread(void)
{
    int status;
    work_in_fork(1000);
    int tid = clone(thread, stack + STACK_SIZE, CLONE_VM | SIGCHLD, NULL);
    check(tid > 0 && waitpid(tid, &status, 0) == tid);
}

__attribute__((noinline)) static void tree_threads(void)
{
    pid_t pids[4];
    stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(stack != MAP_FAILED);
    for (int i = 0; i < 4; i++) {
        pids[i] = fork();
        check(pids[i] >= 0);
        if (pids[i] == 0) {
            with_a_thread();
            _exit(0);
        }
    }
    for (int i = 0; i < 4; i++)
        check(waitpid(pids[i], NULL, 0) == pids[i]);
}

__attribute__((noinline)) static void tree_vfork(const char *program)
{
    static char *const arguments[] = { "oracle_count", "exec", NULL };
    static char *const environment[] = { NULL };
    int status;
    for (int i = 0; i < 3; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            work_before_exec(1000);
            execve(program, arguments, environment);
            _exit(1);
        }
        work_after_vfork(1000);
        check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
    }
}

int main(int argc, char *argv[])
{
    unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    const char *what = argc > 1 ? argv[1] : "tree";
    alarm(TEST_SECONDS);
    if (!strcmp(what, "user")) {
        work_user(n);
    } else if (!strcmp(what, "calls")) {
        count_calls(n);
    } else if (!strcmp(what, "interrupts")) {
        interrupts(n);
    } else if (!strcmp(what, "exec")) {
        work_after_exec(1000);
        return 0;
    } else {
        tree_longjmp();
        tree_signals();
        tree_tail_call();
        tree_threads();
        tree_vfork(argv[0]);
    }
    ok(what);
    return 0;
}
