// A position-independent program, which lies elsewhere each time it is started:
// what the profiler says of it is compared with what it does
// (tests/system/test_pie.py). It has no library, which would have to be
// compiled as position-independent, too.
//
//     pie [ROUNDS]          burn_a, burn_b and burn_c, 2 : 1 : 1, in each round
//     pie fork ROUNDS       the same, and in a child burn_c alone
//     pie exec ROUNDS       the same, then as another program
//     pie signal ROUNDS     all rounds in the handler of a signal
#include <signal.h>
#include <sys/syscall.h>

#define OUTLINE __attribute__((noinline, noclone))
// Keeps what stands before from becoming a tail call.
#define STAY() __asm__ volatile("" ::: "memory")

// A loop of two instructions a turn, without a frame: its caller is found by
// its call frame information.
#define FUNCTION(name, turns)                            \
    void name(void);                                     \
    __asm__(".pushsection .text\n"                       \
            ".type " #name ", @function\n" #name ":\n\t" \
            ".cfi_startproc\n\t"                         \
            "movl $" #turns ", %ecx\n"                   \
            "1: decl %ecx\n\t"                           \
            "jnz 1b\n\t"                                 \
            "ret\n\t"                                    \
            ".cfi_endproc\n\t"                           \
            ".size " #name ", . - " #name "\n"           \
            ".popsection")

FUNCTION(burn_a, 50000);
FUNCTION(burn_b, 25000);
FUNCTION(burn_c, 25000);

static long call(long number, long a, long b, long c, long d)
{
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d)
                     : "memory");
    return result;
}

OUTLINE static void work(unsigned rounds)
{
    while (rounds-- > 0) {
        burn_a();
        burn_b();
        burn_c();
    }
    STAY();
}

OUTLINE static void child(unsigned rounds)
{
    while (rounds-- > 0)
        burn_c();
    STAY();
}

static unsigned handled;

OUTLINE static void handler(int number)
{
    (void)number;
    work(handled);
    STAY();
}

OUTLINE static void interrupted(unsigned rounds)
{
    // As the kernel has it: handler, flags, restorer, mask.
    unsigned long action[5] = { (unsigned long)handler };
    handled = rounds;
    call(SYS_rt_sigaction, SIGUSR1, (long)action, 0, 8);
    call(SYS_kill, call(SYS_getpid, 0, 0, 0, 0), SIGUSR1, 0, 0);
    STAY();
}

static void with_child(unsigned rounds)
{
    long pid = call(SYS_fork, 0, 0, 0, 0);
    if (pid == 0) {
        child(rounds);
        call(SYS_exit, 0, 0, 0, 0);
    }
    work(rounds);
    call(SYS_waitpid, pid, 0, 0, 0);
}

static unsigned number(const char *text)
{
    unsigned n = 0;
    while (*text >= '0' && *text <= '9')
        n = 10 * n + (unsigned)(*text++ - '0');
    return n;
}

__attribute__((used)) OUTLINE static void start(long argc, char **argv)
{
    const char *how = argc > 2 ? argv[1] : "";
    unsigned rounds = argc > 1 ? number(argv[argc - 1]) : 1;
    char *rest[] = { argv[0], argv[argc - 1], 0 };
    if (how[0] == 'f')
        with_child(rounds);
    else if (how[0] == 's')
        interrupted(rounds);
    else
        work(rounds);
    if (how[0] == 'e')
        call(SYS_execve, (long)"/proc/self/exe", (long)rest, 0, 0);
    call(SYS_write, 1, (long)"ok pie\n", 7, 0);
    call(SYS_exit, 0, 0, 0, 0);
}

__asm__(".pushsection .text\n"
        ".globl _start\n"
        ".type _start, @function\n"
        "_start:\n\t"
        "xorl %ebp, %ebp\n\t"
        "movl %esp, %eax\n\t"
        "leal 4(%eax), %edx\n\t"
        "pushl %edx\n\t"
        "pushl (%eax)\n\t"
        "call start\n\t"
        "hlt\n\t"
        ".size _start, . - _start\n"
        ".popsection");
