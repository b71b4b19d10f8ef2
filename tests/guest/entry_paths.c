// Registers survive every way into the kernel and out of it, ROUNDS times.
// Concurrently a debugger of the machine interrupts each instruction of these
// ways (tests/system/test_entry.py).
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#define ROUNDS 200
#define GETPID 20
#define READ 3
#define UNKNOWN_CALL 1999

struct registers {
    long ebx, ecx, edx, esi, edi, ebp, eax;
};
struct frame {
    struct registers in, out;
};

// NAME(frame): runs CODE with the registers `in`, then stores them to `out`.
#define AROUND(name, code)                                \
    __asm__(".pushsection .text\n" #name ": pushal\n"     \
            "movl 36(%esp), %eax\n"                       \
            "pushl %eax\n"                                \
            "movl (%eax), %ebx\n movl 4(%eax), %ecx\n"    \
            "movl 8(%eax), %edx\n movl 12(%eax), %esi\n"  \
            "movl 16(%eax), %edi\n movl 20(%eax), %ebp\n" \
            "movl 24(%eax), %eax\n" code "\n"             \
            "pushl %eax\n"                                \
            "movl 4(%esp), %eax\n"                        \
            "movl %ebx, 28(%eax)\n movl %ecx, 32(%eax)\n" \
            "movl %edx, 36(%eax)\n movl %esi, 40(%eax)\n" \
            "movl %edi, 44(%eax)\n movl %ebp, 48(%eax)\n" \
            "popl 52(%eax)\n"                             \
            "addl $4, %esp\n"                             \
            "popal\n"                                     \
            "ret\n"                                       \
            ".popsection\n");                             \
    void name(struct frame *f)

AROUND(around_call, "int $0x80");
AROUND(around_fault, "movb $1, (%eax)");
AROUND(around_breakpoint, "int3");
AROUND(around_bad_opcode, "ud2");
AROUND(around_interrupts, "movl $20000, %eax\n 1: decl %eax\n jnz 1b");

static volatile int handled;

static void skip(int signal, siginfo_t *info, void *context)
{
    (void)info;
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (signal == SIGILL)
        r[REG_EIP] += 2;
    handled++;
}

// All registers are unchanged except eax.
static void run(void (*around)(struct frame *), struct registers in, long eax)
{
    struct frame f = { .in = in };
    around(&f);
    in.eax = eax;
    check(memcmp(&f.out, &in, sizeof(in)) == 0);
}

static void round_of(int zero)
{
    struct registers any = { 0x11111111, 0x22222222, 0x33333333, 0x44444444,
                             0x55555555, 0x66666666, GETPID };
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(page != MAP_FAILED);
    run(around_call, any, getpid());
    any.eax = UNKNOWN_CALL;
    run(around_call, any, -ENOSYS);
    any.eax = (long)page;
    run(around_fault, any, any.eax);
    run(around_breakpoint, any, any.eax);
    run(around_bad_opcode, any, any.eax);
    run(around_interrupts, any, 0);
    // The kernel faults while it copies to the page.
    struct registers reads = { zero, (long)page + 4096, 10, 4, 5, 6, READ };
    run(around_call, reads, 10);
    check(munmap(page, 8192) == 0);
}

int main(int argc, char *argv[])
{
    int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    int zero = open("/dev/zero", O_RDONLY);
    static const int signals[] = { SIGILL, SIGTRAP, SIGALRM };
    struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
    struct sigaction action = { .sa_sigaction = skip,
                                .sa_flags = SA_SIGINFO | SA_RESTART };

    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        check(sigaction(signals[i], &action, NULL) == 0);
    check(zero >= 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; i < rounds; i++)
        round_of(zero);
    check(handled > 2 * rounds);
    ok("registers across calls, faults, interrupts and signals");
    return 0;
}
