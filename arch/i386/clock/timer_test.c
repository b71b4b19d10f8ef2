// Each timer must deliver one interrupt before it is used: firmware and
// hypervisors list some that count but do not interrupt.
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/clock/interrupt_wait.h"

// An emulator that serves each read of the controller under one lock for all
// devices must also have time for the timer. Returns how long the step took.
static u64 step(void)
{
    u64 start = clock_now_ns(), ns;
    do {
        cpu_relax();
        ns = clock_now_ns() - start;
    } while (ns < WAIT_STEP_NS);
    return ns;
}

static bool is_requested(const struct irq_source *s)
{
    struct interrupt_wait w = { 0 };
    do {
        if (irq_source_requested(s))
            return true;
    } while (interrupt_wait_more(&w, step()));
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
