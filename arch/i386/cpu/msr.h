// Model-specific registers that the CPU may lack, whatever CPUID reports.
#pragma once

#include "lib/types.h"

// The instruction at label 1 may fault: execution then continues at label 2.
#define MSR_FIXUP                       \
    "2:\n\t"                            \
    ".pushsection .ex_table, \"a\"\n\t" \
    ".long 1b, 2b\n\t"                  \
    ".popsection"

// False: the register does not exist, and *value is unchanged. Any context
// after exceptions are set up.
static NOTRACE inline bool read_msr_safely(u32 msr, u64 *value)
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

// False: the register does not exist, or rejects the value.
static NOTRACE inline bool write_msr_safely(u32 msr, u64 value)
{
    u32 done = 0;
    __asm__ volatile("1: wrmsr\n\tincl %[done]\n" MSR_FIXUP
                     : [done] "+r"(done)
                     : "c"(msr), "A"(value)
                     : "memory");
    return done;
}
