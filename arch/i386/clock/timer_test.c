// Every timer proves one interrupt before it is used: firmware and hypervisors
// name some that count, but do not interrupt.
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"

#define LIMIT_NS 100000000u // a hypervisor may be busy elsewhere
#define STEP_NS 10000u

// Waits for its interrupt, while this CPU runs: a hypervisor that has stopped
// the machine may let it go on before the timer, so that a long step from one
// look to the next says nothing.
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
