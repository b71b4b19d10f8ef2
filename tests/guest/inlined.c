// Three quarters of its time are in one inlined function, a quarter in another.
// Both contain nothing but a call of `spin`, which is inlined, too
// (tests/system/test_inlines.py).
//
//     inlined [ROUNDS]      (1)
#include "test.h"

#define ALWAYS __attribute__((always_inline))
#define TURNS 100000u // of a quarter

static inline ALWAYS void spin(uint32_t turns)
{
    for (uint32_t i = 0; i < turns; i++)
        __asm__ volatile("" : : "r"(i));
}

static inline ALWAYS void three_quarters(void)
{
    spin(3 * TURNS);
}

static inline ALWAYS void one_quarter(void)
{
    spin(TURNS);
}

static __attribute__((noinline)) void work(uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++) {
        three_quarters();
        one_quarter();
    }
}

int main(int argc, char *argv[])
{
    work(argc > 1 ? atoi(argv[1]) : 1);
    ok("inlined functions spin");
    return 0;
}
