// RDRAND, where the CPU has it (SDM vol. 1, 7.3.17: up to ten tries are enough
// on a sound generator).

#include "arch/entropy.h"
#include "lib/types.h"

#define CPUID_1_ECX_RDRAND (1u << 30)
#define TRIES 10

static bool has_rdrand(void)
{
    u32 eax = 1, ebx, ecx, edx;
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx));
    return ecx & CPUID_1_ECX_RDRAND;
}

bool cpu_random_u32(u32 *out)
{
    bool ok = false;
    if (!has_rdrand())
        return false;
    for (int i = 0; i < TRIES && !ok; i++)
        __asm__ volatile("rdrand %0" : "=r"(*out), "=@ccc"(ok));
    return ok;
}
