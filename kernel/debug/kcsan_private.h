// The race detector's two files, kcsan.c and kcsan_report.c, share this.
#pragma once

#include "arch/cpu.h"
#include "kernel/debug/kcsan.h"

#define KCSAN_STACK_MAX 12u

// One of the two accesses that race.
struct kcsan_side {
    u32 addr, size, cpu, tid, irq_depth;
    bool write, marked;
    u32 depth;
    u32 pcs[KCSAN_STACK_MAX];
};

extern bool kcsan_enabled; // marked; false once there is a report to make
// A CPU that reports, and goes on after it, watches nothing: each by its own.
extern bool kcsan_reporting[CPU_MAX];

// An access of this CPU, with its callers from the frame at `ebp` on.
void kcsan_fill_side(struct kcsan_side *s, u32 addr, u32 size, bool write,
                     bool marked, u32 ebp);
// Ends the machine, but with kcsan=go-on. `other`: NULL: it was not seen, but
// the value changed.
void kcsan_report(const struct kcsan_side *mine,
                  const struct kcsan_side *other);
