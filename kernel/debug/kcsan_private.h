// Shared by the race detector's two files, kcsan.c and kcsan_report.c.
#pragma once

#include "arch/cpu.h"
#include "kernel/debug/kcsan.h"

#define KCSAN_STACK_MAX 12u

// One of the two racing accesses.
struct kcsan_side {
    u32 addr, size, cpu, tid, irq_depth;
    bool write, marked;
    u32 depth;
    u32 pcs[KCSAN_STACK_MAX];
};

extern bool kcsan_enabled; // marked; cleared before a report
// Set on a CPU that reports and then continues: it watches nothing. Each entry
// is written by its own CPU.
extern bool kcsan_reporting[CPU_MAX];

// Describes an access of this CPU, with its callers from the frame at `ebp` on.
void kcsan_fill_side(struct kcsan_side *s, u32 addr, u32 size, bool write,
                     bool marked, u32 ebp);
// Ends the machine, unless kcsan=go-on is set. `other` == NULL: the other
// access was not seen, but the value changed.
void kcsan_report(const struct kcsan_side *mine,
                  const struct kcsan_side *other);
