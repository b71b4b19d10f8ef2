// Model-specific registers that the CPU may not have, whatever CPUID says.
#pragma once

#include "lib/types.h"

// At label 1 is an instruction that may fault: then execution goes on at 2.
#define MSR_FIXUP                       \
    "2:\n\t"                            \
    ".pushsection .ex_table, \"a\"\n\t" \
    ".long 1b, 2b\n\t"                  \
    ".popsection"

// False: there is no such register, *value is as it was. Any context with the
// exceptions set up.
static inline bool read_msr_safely(u32 msr, u64 *value)
{
    u64 read = 0;
    u32 done = 0;
    __asm__ volatile("1: rdmsr\n\tincl %[done]\n" MSR_FIXUP
                     : "+A"(read), [done] "+r"(done)
                     : "c"(msr));
    if (done)
        *value = read;
    return done;
}

// False: there is no such register, or it refuses the value.
static inline bool write_msr_safely(u32 msr, u64 value)
{
    u32 done = 0;
    __asm__ volatile("1: wrmsr\n\tincl %[done]\n" MSR_FIXUP
                     : [done] "+r"(done)
                     : "c"(msr), "A"(value)
                     : "memory");
    return done;
}
