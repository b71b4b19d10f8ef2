// Two functions of the same number of instructions that take turns: one is
// called by 110 others, so it is dear to sample with its callers
// (tests/system/test_lean.py).
//
//     halves INSTRUCTIONS ROUNDS     (100000 10)
#include "test.h"

#define CALLERS 110

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

HALF(deep_half);
HALF(flat_half);

// (The call of itself is none that GCC could turn into a loop.)
static __attribute__((noinline)) void descend(uint32_t callers, uint32_t rounds)
{
    if (callers > 1)
        descend(callers - 1, rounds);
    else
        deep_half(rounds);
    __asm__ volatile("");
}

int main(int argc, char *argv[])
{
    uint32_t instructions = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
    uint32_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 10;
    while (rounds-- > 0) {
        descend(CALLERS, instructions / 2);
        flat_half(instructions / 2);
    }
    ok("halves");
    return 0;
}
