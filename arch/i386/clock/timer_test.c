// Each timer must deliver one interrupt before it is used: firmware and
// hypervisors list some that count but do not interrupt.
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"

#define LIMIT_NS 100000000u // allows for a busy hypervisor
#define STEP_NS 10000u

// Waits for the interrupt, counting only time in which this CPU runs: after a
// hypervisor has paused the machine, the CPU may resume before the timer. So a
// long step between two reads of the clock counts as STEP_NS at most.
static bool is_requested(const struct irq_source *s)
{
    u64 last = clock_now_ns(), waited = 0;
    while (!irq_source_requested(s) && waited < LIMIT_NS) {
        cpu_relax();
        u64 now = clock_now_ns();
        waited += MIN(now - last, (u64)STEP_NS);
        last = now;
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
