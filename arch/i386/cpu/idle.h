// The choice of how idle CPUs wait, from CPUID and the kernel argument idle=.
// That MWAIT ends at an interrupt although interrupts are off (leaf 5, ECX bit
// 1) is not needed: they are on, from the instruction before MWAIT.
#pragma once

#include "lib/string.h"
#include "lib/types.h"

enum idle_way { IDLE_HLT, IDLE_MWAIT, IDLE_POLL };

// What CPUID says (SDM vol. 2A, CPUID, leaves 1 and 5).
#define LEAF_1_ECX_MONITOR (1u << 3)
#define LEAF_5_EBX_LINE 0xffffu // largest monitored range, bytes

struct idle_cpuid {
    u32 leaf_1_ecx, leaf_5_ebx; // 0: no such leaf
};

static inline const char *idle_no_mwait(const struct idle_cpuid *id)
{
    if (!(id->leaf_1_ecx & LEAF_1_ECX_MONITOR))
        return "the CPU has no MONITOR and MWAIT";
    if (!(id->leaf_5_ebx & LEAF_5_EBX_LINE))
        return "CPUID leaf 5 reports no range that MONITOR watches";
    return NULL;
}

// `asked`: the argument's value, or NULL. *problem: NULL, or why another way
// than the one asked for is chosen.
static inline enum idle_way idle_choose(const struct idle_cpuid *id,
                                        const char *asked, const char **problem)
{
    *problem = NULL;
    if (!asked || !strcmp(asked, "hlt"))
        return IDLE_HLT;
    if (!strcmp(asked, "poll"))
        return IDLE_POLL;
    *problem = strcmp(asked, "mwait") ? "hlt, mwait and poll are known"
                                      : idle_no_mwait(id);
    return *problem ? IDLE_HLT : IDLE_MWAIT;
}
