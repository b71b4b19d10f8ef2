// Stack canaries (GCC's and clang's -fstack-protector). A function with an
// array of 8 bytes or more puts a copy of the guard between its variables and
// its return address, and compares it when it returns. In checked kernels all
// functions with an array do, and those that take a variable's address
// (-fstack-protector-strong), which would cost getpid 4 %.
//
// This file is compiled without them (UNCHECKED in the Makefile).

#include "kernel/debug/canary.h"

#include "arch/cpu.h"
#include "arch/entropy.h"
#include "kernel/base/log.h"

#define GOLDEN_RATIO 2654435761u // of 2^32: spreads a number over all bits

unsigned long __stack_chk_guard = CANARY_AT_START;

void __stack_chk_fail(void); // called by compiled code

void canary_init(void)
{
    u32 word;
    if (!cpu_random_u32(&word))
        word = (u32)rdtsc() * GOLDEN_RATIO;
    __stack_chk_guard = word & ~CANARY_TERMINATOR;
}

void __stack_chk_fail(void)
{
    u32 offset, pc = (u32)__builtin_return_address(0) - 1; // in the function
    const char *name = ksym_lookup(pc, &offset);
    panic("canary: the stack frame of %s was overwritten", name ? name : "?");
}
