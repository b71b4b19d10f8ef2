// A loop of a known number of instructions; prints the TSC cycles it took. The
// excess over an undisturbed run is what other work took of the CPU
// (tests/system/test_cost.py).
//
//     observed [MILLIONS]     of iterations, two instructions each (1)
#include "test.h"

int main(int argc, char *argv[])
{
    unsigned long millions = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    uint64_t start = __builtin_ia32_rdtsc();
    for (unsigned long i = 0; i < millions; i++) {
        uint32_t turns = 1000000;
        __asm__ volatile("1: decl %0\n\tjnz 1b" : "+r"(turns) : : "cc");
    }
    fprintf(stderr, "took %llu\n",
            (unsigned long long)(__builtin_ia32_rdtsc() - start));
    ok("observed");
    return 0;
}
