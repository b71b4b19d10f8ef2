// A position-independent program, loaded at another address each time: its
// profile is compared with the known shares of its functions
// (tests/system/test_pie.py). It uses no library, which would have to be
// position-independent, too.
//
//     pie [ROUNDS]          burn_a, burn_b and burn_c, 2 : 1 : 1, in each round
//     pie fork ROUNDS       the same, and in a child burn_c alone
//     pie exec ROUNDS       the same, then as another program
//     pie signal ROUNDS     all rounds in the handler of a signal
//     pie jit ROUNDS        calls a copy of burn_c in its heap, which is
//                           "copied" in /tmp/perf-PID.map
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

#define OUTLINE __attribute__((noinline, noclone))
// Prevents a tail call before it.
#define STAY() __asm__ volatile("" ::: "memory")

// A loop of two instructions, without a frame: its caller is found by its call
// frame information. (no_icf: the compiler would merge identical functions.)
#define LOOP OUTLINE __attribute__((no_icf, optimize("omit-frame-pointer")))
#define FUNCTION(name, turns)                                  \
    LOOP static void name(void)                                \
    {                                                          \
        unsigned left = turns;                                 \
        __asm__ volatile("1: decl %0\n\tjnz 1b" : "+r"(left)); \
    }

FUNCTION(burn_a, 50000)
FUNCTION(burn_b, 25000)
FUNCTION(burn_c, 25000)

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
    // The kernel's layout: handler, flags, restorer, mask.
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

static const unsigned char spin[] = {
    0x55,                         // push %ebp
    0x89, 0xe5,                   // mov %esp, %ebp
    0xb9, 0xa8, 0x61, 0x00, 0x00, // mov $25000, %ecx
    0x49,                         // 1: dec %ecx
    0x75, 0xfd,                   // jnz 1b
    0x5d,                         // pop %ebp
    0xc3,                         // ret
};

// Writes the digits of n before `end`. Returns the first one.
static char *digits(char *end, unsigned long n, unsigned base)
{
    do
        *--end = "0123456789abcdef"[n % base];
    while (n /= base);
    return end;
}

static void write_map(unsigned long code)
{
    char line[] = "        "
                  " d spin\n",
         end[] = "                    "
                 ".map";
    char *name = digits(end + 20, call(SYS_getpid, 0, 0, 0, 0), 10);
    static const char folder[] = "/tmp/perf-";
    for (unsigned i = sizeof(folder) - 1; i-- > 0;)
        *--name = folder[i];
    long file = call(SYS_open, (long)name, O_CREAT | O_WRONLY, 0644, 0);
    char *text = digits(line + 8, code, 16);
    call(SYS_write, file, (long)text, line + sizeof(line) - 1 - text, 0);
    call(SYS_close, file, 0, 0, 0);
}

OUTLINE static void made(unsigned rounds)
{
    unsigned long heap = (call(SYS_brk, 0, 0, 0, 0) + 4095) & -4096;
    call(SYS_brk, heap + 4096, 0, 0, 0);
    call(SYS_mprotect, heap, 4096, 7, 0);
    for (unsigned i = 0; i < sizeof(spin); i++)
        ((volatile unsigned char *)heap)[i] = spin[i];
    write_map(heap);
    while (rounds-- > 0)
        ((void (*)(void))heap)();
    STAY();
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
    else if (how[0] == 'j')
        made(rounds);
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
