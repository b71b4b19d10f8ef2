// A loop around one system call. It measures the kernel's share itself, by
// comparison with the same loop without the call (tests/system/test_truth.py).
//
//     call_share [read|getppid [ROUNDS]]      (getppid, 100)
//
// A round makes CALLS calls. With "read", each iteration reads 512 bytes and
// adds them up.
#include "test.h"

#include <fcntl.h>
#include <sys/syscall.h>

#define CALLS 100
#define BYTES 512

static char buffer[BYTES];
static int fd;

// The two loops differ in this one instruction.
void call(void);
void no_call(void);
__asm__("    .text\n"
        "    .p2align 4\n"
        "call: int $0x80\n"
        "    ret\n"
        "    .p2align 4\n"
        "no_call: nop\n"
        "    ret\n");

static uint32_t now(void)
{
    uint32_t low;
    __asm__ volatile("rdtsc" : "=a"(low) : : "edx");
    return low;
}

static __attribute__((noinline)) void add_up(void)
{
    uint32_t sum = 0;
    for (int i = 0; i < BYTES; i++)
        sum += buffer[i];
    __asm__ volatile("" : : "r"(sum));
}

static __attribute__((noinline)) uint32_t cycles_of_round(bool reads,
                                                          void (*enter)(void))
{
    uint32_t start = now();
    for (int i = 0; i < CALLS; i++) {
        long n = reads ? SYS_read : SYS_getppid;
        __asm__ volatile("call *%%esi"
                         : "+a"(n)
                         : "b"(fd), "c"(buffer), "d"(BYTES), "S"(enter)
                         : "memory");
        if (reads)
            add_up();
    }
    return now() - start;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

// The median of several rounds: interrupts lengthen some.
static double middle(bool reads, void (*enter)(void))
{
    uint32_t cycles[15];
    const unsigned count = sizeof(cycles) / sizeof(cycles[0]);
    for (unsigned i = 0; i < count; i++)
        cycles[i] = cycles_of_round(reads, enter);
    qsort(cycles, count, sizeof(cycles[0]), by_size);
    return cycles[count / 2];
}

int main(int argc, char *argv[])
{
    bool reads = argc > 1 && strcmp(argv[1], "read") == 0;
    long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 100;

    fd = open("/dev/zero", O_RDONLY);
    check(fd >= 0);
    double user = middle(reads, no_call), all = middle(reads, call);
    dprintf(1, "kernel share %.4f\n", 1 - user / all);
    for (long i = 0; i < rounds; i++)
        cycles_of_round(reads, call);
    ok("call_share");
    return 0;
}
