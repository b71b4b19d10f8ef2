// Each timer must deliver one interrupt before it is used: firmware and
// hypervisors list some that count but do not interrupt.
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"

#define LIMIT_NS 100000000u // allows for a busy hypervisor
#define STEP_NS 10000u

// Waits for the interrupt, counting only time in which this CPU runs: after a
// hypervisor has paused the machine, the CPU may resume before the timer. So
// each step between two reads of the controller counts as STEP_NS. It is as
// long at least: an emulator that serves each read under one lock for all
// devices must also have time for the timer.
static bool is_requested(const struct irq_source *s)
{
    for (u32 waited = 0; waited < LIMIT_NS; waited += STEP_NS) {
        if (irq_source_requested(s))
            return true;
        u64 until = clock_now_ns() + STEP_NS;
        while (clock_now_ns() < until)
            cpu_relax();
    }
    return irq_source_requested(s);
}

bool timer_interrupts(struct timer *t, const struct irq_source *s, u32 mode,
                      u64 ticks)
{
    if (t->start(t, mode, ticks))
        return false;
    bool arrives = is_requested(s);
    t->stop(t);
    return arrives;
}
