// The code whose call chains are known (chains.c): functions with frames of all
// kinds and without, signals, and all ways into the kernel. The child runs it.
#pragma once

#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#define PAGE 4096u
#define DEEP 100     // frames: fit into a chain
#define TOO_DEEP 300 // frames: do not fit
#define SPINS 20000u
#define TIMER_US 10
#define HANDLED_US 300

#define OUTLINE __attribute__((noinline, noclone))
// Prevents a tail call before it.
#define STAY() __asm__ volatile("" ::: "memory")

static volatile unsigned sink;

OUTLINE static void leaf(unsigned a, unsigned b)
{
    volatile unsigned local[5];
    for (unsigned i = 0; i < 5; i++)
        local[i] = a * b + i;
    sink += local[a % 5];
}

OUTLINE static void middle(unsigned a)
{
    leaf(a, 3);
    leaf(a, 5);
    STAY();
}

// Its frame size is known only at run time.
OUTLINE static void sized(unsigned n)
{
    volatile char room[16 + n % 32];
    room[n % 16] = 1;
    leaf(n, room[n % 16]);
    STAY();
}

// It realigns its stack.
OUTLINE static void aligned(unsigned n)
{
    volatile unsigned line[16] __attribute__((aligned(64)));
    line[n % 16] = n;
    leaf(n, line[n % 16]);
    STAY();
}

// No frame; ebp holds another value.
void bare(void);
__asm__(".pushsection .text\n"
        ".type bare, @function\n"
        "bare:\n\t"
        ".cfi_startproc\n\t"
        "pushl %ebx\n\t"
        ".cfi_adjust_cfa_offset 4\n\t"
        "pushl %ebp\n\t"
        ".cfi_adjust_cfa_offset 4\n\t"
        ".cfi_rel_offset ebp, 0\n\t"
        "xorl %ebx, %ebx\n\t"
        "movl $7, %ebp\n\t"
        "addl %ebp, %ebx\n\t"
        "popl %ebp\n\t"
        ".cfi_adjust_cfa_offset -4\n\t"
        ".cfi_restore ebp\n\t"
        "popl %ebx\n\t"
        ".cfi_adjust_cfa_offset -4\n\t"
        "ret\n\t"
        ".cfi_endproc\n\t"
        ".size bare, . - bare\n"
        ".popsection");

OUTLINE static void calls_bare(void)
{
    bare();
    STAY();
}

static char from[256], to[256];
// Volatile, so that the compiler does not inline them.
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
static void *(*volatile set)(void *, int, size_t) = memset;

OUTLINE static void copier(unsigned n)
{
    copy(to, from + n % 4, 20 + n % 50);
    STAY();
}

OUTLINE static void setter(unsigned n)
{
    set(to + n % 4, 1, n % 70);
    STAY();
}

OUTLINE static void calls(unsigned n)
{
    middle(n);
    sized(n);
    aligned(n);
    calls_bare();
    copier(n);
    setter(n);
    STAY();
}

OUTLINE static void system_call(void)
{
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "0"(SYS_getpid) : "memory");
    sink += result;
}

OUTLINE static void entries(unsigned n)
{
    (void)n;
    system_call();
    STAY();
}

// The libc's wrappers, which enter the kernel through the vDSO.
OUTLINE static void wrappers(unsigned n)
{
    struct timespec t;
    check(mkdir("/none/such", 0700) < 0);
    sink += (unsigned)getppid();
    clock_gettime(CLOCK_MONOTONIC, &t);
    sink += n + (unsigned)t.tv_nsec;
    STAY();
}

static volatile char *fresh;

OUTLINE static void touch(void)
{
    *fresh = 1;
}

OUTLINE static void faults(unsigned n)
{
    (void)n;
    touch();
    madvise((void *)fresh, PAGE, MADV_DONTNEED);
    STAY();
}

OUTLINE static void spin(void)
{
    for (volatile unsigned i = 0; i < SPINS; i++)
        ;
}

// A timer whose signal is ignored interrupts at its highest rate.
OUTLINE static void interrupts(unsigned n)
{
    const struct itimerval often = { { 0, TIMER_US }, { 0, TIMER_US } };
    if (n == 0) {
        signal(SIGALRM, SIG_IGN);
        check(setitimer(ITIMER_REAL, &often, NULL) == 0);
    }
    spin();
    STAY();
}

static void handler(int number)
{
    leaf((unsigned)number, 1);
    STAY();
}

static void on_information(int number, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    leaf((unsigned)number, 2);
    kill(getpid(), SIGUSR1);
    STAY();
}

// It has no frame pointer.
__attribute__((optimize("omit-frame-pointer"))) static void
on_frameless(int number)
{
    sink += (unsigned)number;
}

OUTLINE static void handle(int number, struct sigaction action)
{
    check(sigaction(number, &action, NULL) == 0);
}

// With the FPU in use, signal frames contain its registers and reach to the
// stack pointer.
static volatile double fpu_in_use;

// Nested handlers, of signals sent by a call and of signals at any instruction.
OUTLINE static void signals(unsigned n)
{
    fpu_in_use += n;
    const struct itimerval often = { { 0, HANDLED_US }, { 0, HANDLED_US } };
    if (n == 0) {
        handle(SIGUSR1, (struct sigaction){ .sa_handler = handler });
        handle(SIGUSR2, (struct sigaction){ .sa_sigaction = on_information,
                                            .sa_flags = SA_SIGINFO });
        handle(SIGALRM, (struct sigaction){ .sa_handler = on_frameless });
        check(setitimer(ITIMER_REAL, &often, NULL) == 0);
    }
    kill(getpid(), SIGUSR2);
    leaf(n, 1);
    STAY();
}

OUTLINE static void recurse(unsigned depth)
{
    if (depth > 0)
        recurse(depth - 1);
    else
        spin();
    STAY();
}

OUTLINE static void deep(unsigned n)
{
    (void)n;
    recurse(DEEP);
    STAY();
}

OUTLINE static void too_deep(unsigned n)
{
    (void)n;
    recurse(TOO_DEEP);
    STAY();
}

// Spins with these values in esp and ebp.
static inline __attribute__((always_inline)) void spin_on(uint32_t esp,
                                                          uint32_t ebp)
{
    unsigned spins = SPINS;
    __asm__ volatile("movl %%esp, %%esi\n\t"
                     "movl %%ebp, %%edi\n\t"
                     "movl %1, %%esp\n\t"
                     "movl %2, %%ebp\n\t"
                     "1: decl %0\n\t"
                     "jnz 1b\n\t"
                     "movl %%edi, %%ebp\n\t"
                     "movl %%esi, %%esp"
                     : "+c"(spins)
                     : "a"(esp), "d"(ebp)
                     : "esi", "edi", "memory");
}

// A stack of two frames, the second of which lies in an inaccessible page.
static char *torn_stack;

OUTLINE static void torn(unsigned n)
{
    (void)n;
    uint32_t *frame = (uint32_t *)(torn_stack + PAGE / 2);
    frame[0] = (uint32_t)torn_stack + PAGE + 64;
    frame[1] = (uint32_t)middle + 1; // as if called from there
    spin_on((uint32_t)frame - 64, (uint32_t)frame);
}

// The second of three frames has no return address.
OUTLINE static void nowhere(unsigned n)
{
    (void)n;
    uint32_t *frame = (uint32_t *)(torn_stack + PAGE / 2);
    for (unsigned i = 0; i < 3; i++) {
        frame[4 * i] = i < 2 ? (uint32_t)&frame[4 * (i + 1)] : 0;
        frame[4 * i + 1] = i == 1 ? 0 : (uint32_t)middle + 1;
    }
    spin_on((uint32_t)frame - 64, (uint32_t)frame);
}

// Without a stack: esp and ebp are past the end of user memory.
#define USER_END 0xc0000000u
OUTLINE static void astray(unsigned n)
{
    spin_on(USER_END + 16 * (n % 250), USER_END + 16 * (n % 250));
}

// Each way into the kernel and out of it.
#define UNKNOWN_CALL 1999
#define KNOWN_CALL 1000
#define OFTEN_US 300

OUTLINE static long call_kernel(long number, long first,
                                const volatile void *second, long third)
{
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "0"(number), "b"(first), "c"(second), "d"(third)
                     : "memory");
    STAY();
    return result;
}

OUTLINE static void breakpoint(void)
{
    __asm__ volatile("int3");
    STAY();
}

OUTLINE static void bad_opcode(void)
{
    __asm__ volatile("ud2");
    STAY();
}

static void skip(int number, siginfo_t *info, void *context)
{
    (void)info;
    if (number == SIGILL)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EIP] += 2;
    STAY();
}

static void prepare_ways(void)
{
    const struct itimerval often = { { 0, OFTEN_US }, { 0, OFTEN_US } };
    const struct sigaction action = { .sa_sigaction = skip,
                                      .sa_flags = SA_SIGINFO };
    check(sigaction(SIGTRAP, &action, NULL) == 0);
    check(sigaction(SIGILL, &action, NULL) == 0);
    signal(SIGALRM, SIG_IGN);
    check(setitimer(ITIMER_REAL, &often, NULL) == 0);
    sync(); // the debugger waits for this
}

OUTLINE static void ways(unsigned n)
{
    static int zero;
    if (n == 0) {
        zero = open("/dev/zero", O_RDONLY);
        prepare_ways();
    }
    call_kernel(UNKNOWN_CALL, 0, NULL, 0);
    call_kernel(KNOWN_CALL, -1, NULL, 0);
    touch();
    breakpoint();
    bad_opcode();
    // The kernel faults while it copies to the page.
    call_kernel(SYS_madvise, (long)fresh, (void *)PAGE, MADV_DONTNEED);
    call_kernel(SYS_read, zero, fresh, 10);
    call_kernel(SYS_madvise, (long)fresh, (void *)PAGE, MADV_DONTNEED);
    spin();
    STAY();
}
