// Memory of each CPU, for CPUs that exist: an array of pointers, by CPU number,
// that is declared before.
//
//     static struct ledger *ledgers[CPU_MAX];
//     CPU_MEMORY(ledgers, 1);                  one struct ledger for each CPU
//
// The boot CPU's is in the image, and its pointer is set before any other C
// code runs. That of another CPU is allocated when the CPU is started; it is
// all zero, aligned to 64 bytes, and directly mapped. The pointers of CPUs at
// or above cpu_count may be NULL. The memory is never freed.
#pragma once

#include "lib/cpu_set.h"
#include "lib/set.h"

#define CPU_MEMORY_ALIGN 64u

struct cpu_memory {
    void **of_cpu;
    void *of_boot_cpu;
    u32 size; // bytes
};

#define CPU_MEMORY(array, count)                                           \
    static __typeof__(*(array)[0]) array##_of_boot_cpu[count]              \
        __attribute__((aligned(CPU_MEMORY_ALIGN)));                        \
    static const struct cpu_memory array##_memory = {                      \
        (void **)(array), array##_of_boot_cpu, sizeof(array##_of_boot_cpu) \
    };                                                                     \
    LINKER_SET_ADD(cpu_memory, array##_memory)
