// tester [SCALE]: spends its time in burn_a, burn_b and burn_c as 2 : 1 : 1.
//
// The program of appendix B.4 of the thesis that Strobe's profiler follows. The
// loops are compiled without optimisation, so that the compiler does not remove
// them. The functions differ only in their names. SCALE (100) is the length in
// percent.
#include <stdint.h>
#include <stdlib.h>

#include "user/libstrobe/strobe.h"

#define MANY 10000000ull // iterations a call at scale 100

#define UNOPTIMISED __attribute__((noinline, optimize("O0")))

static uint64_t many = MANY;

UNOPTIMISED static void burn_a(void)
{
    uint64_t i;
    for (i = 0; i < many; ++i)
        ;
}

UNOPTIMISED static void burn_b(void)
{
    uint64_t i;
    for (i = 0; i < many; ++i)
        ;
}

UNOPTIMISED static void burn_c(void)
{
    uint64_t i;
    for (i = 0; i < many; ++i)
        ;
}

static unsigned long scale_of(const char *text)
{
    char *end;
    unsigned long scale = strtoul(text, &end, 10);

    if (end == text || *end != '\0' || *text == '-')
        fail(2, "%s: not a length in percent; usage: tester [SCALE]", text);
    return scale;
}

int main(int argc, char *argv[])
{
    if (argc > 1)
        many = MANY * scale_of(argv[1]) / 100;
    burn_a();
    burn_a();
    burn_b();
    burn_c();
    return 0;
}
