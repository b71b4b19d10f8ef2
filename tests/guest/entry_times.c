// Which time the ways into the kernel and out of it are charged to: loops of
// known instructions, and the user and kernel time that getrusage reports for
// them.
//
//     entry_times        under tools/vm --icount 0 --smp 1: an instruction is
//                        one nanosecond
#include "test.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define TURNS 200000u
#define PAGE 4096u
#define PAGES 2000u

static struct rusage since;

static long us(struct timeval a, struct timeval b)
{
    return (a.tv_sec - b.tv_sec) * 1000000L + a.tv_usec - b.tv_usec;
}

static void begin(void)
{
    check(getrusage(RUSAGE_SELF, &since) == 0);
}

static void end(const char *what, unsigned turns)
{
    struct rusage now;

    check(getrusage(RUSAGE_SELF, &now) == 0);
    printf("%s turns %u user %ld kernel %ld\n", what, turns,
           us(now.ru_utime, since.ru_utime), us(now.ru_stime, since.ru_stime));
}

static void calls(void)
{
    unsigned n = TURNS;

    begin();
    __asm__ volatile("1: movl %1, %%eax\n\t"
                     "int $0x80\n\t"
                     "subl $1, %0\n\t"
                     "jnz 1b"
                     : "+r"(n)
                     : "i"(SYS_getppid)
                     : "eax", "memory", "cc");
    end("calls", TURNS);
}

// A faulting store is executed once, after the fault.
static void faults(void)
{
    char *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned n = PAGES;

    check(at != MAP_FAILED);
    begin();
    __asm__ volatile("1: movb $1, (%1)\n\t"
                     "addl %2, %1\n\t"
                     "subl $1, %0\n\t"
                     "jnz 1b"
                     : "+r"(n), "+r"(at)
                     : "i"(PAGE)
                     : "memory", "cc");
    end("faults", PAGES);
}

static void libc(void)
{
    unsigned n = TURNS;

    begin();
    __asm__ volatile("1: call getppid\n\t"
                     "subl $1, %0\n\t"
                     "jnz 1b"
                     : "+b"(n)
                     :
                     : "eax", "ecx", "edx", "memory", "cc");
    end("libc", TURNS);
}

int main(void)
{
    calls();
    faults();
    libc();
    ok("what is said of them is compared by tests/system/test_ledger.py");
    return 0;
}
