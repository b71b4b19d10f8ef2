// A loop of a known period, half of it in each of two functions: samples at
// unsuitable distances keep step with it (tests/system/test_in_step.py).
//
//     in_step [NANOSECONDS MILLISECONDS]      (100000, 10)
#include "test.h"

// A loop of two instructions.
#define HALF(name)                                       \
    void name(uint32_t rounds);                          \
    __asm__(".pushsection .text\n"                       \
            ".type " #name ", @function\n" #name ":\n\t" \
            "movl 4(%esp), %ecx\n"                       \
            "1: decl %ecx\n\t"                           \
            "jnz 1b\n\t"                                 \
            "ret\n\t"                                    \
            ".size " #name ", . - " #name "\n"           \
            ".popsection")

HALF(half_a);
HALF(half_b);

#define TRIAL 1000000u

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int main(int argc, char *argv[])
{
    uint32_t loop_ns = argc == 3 ? strtoul(argv[1], NULL, 10) : 100000;
    uint32_t ms = argc == 3 ? strtoul(argv[2], NULL, 10) : 10;
    uint64_t began = now();
    half_a(TRIAL);
    uint64_t a_round = (now() - began) * 1000 / TRIAL; // picoseconds
    uint32_t rounds = (uint64_t)loop_ns * 500 / a_round;
    uint64_t end = now() + ms * 1000000ull;
    while (now() < end) {
        for (int i = 0; i < 100; i++) {
            half_a(rounds);
            half_b(rounds);
        }
    }
    ok("in_step");
    return 0;
}
