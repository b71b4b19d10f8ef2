// Starting, stopping and reading single counters.
//
// An NMI may occur between any two instructions here, and its handler opens and
// closes the gate. So a counter is added to `enabled` before it runs, and
// removed from it before it is stopped: what the handler writes to the gate is
// then correct at any moment, and it never restarts a counter that is being
// stopped.

#include "arch/i386/pmu/counters.h"

bool pmu_write(const struct pmu *p, u32 n, u64 events)
{
    const struct pmu_counter *c = &p->counter[n];
    return p->io->write(c->value, -events & ((1ull << c->width) - 1));
}

NOTRACE void pmu_load_period(const struct pmu_cpu *c, struct pmu_slot *s,
                             u64 left)
{
    u32 first = left > PMU_LOAD_MAX ? PMU_LOAD_MAX : (u32)left;
    s->rest = left - first;
    s->limit = s->rest ? 0 : (u32)MIN(s->period, (u64)UINT32_MAX);
    pmu_load(c, s, first);
}

// Sets the counters that run when the gate is open.
static void enable(struct pmu_cpu *c, u32 enabled)
{
    u32 p6_bit = enabled ? SELECT_EN : 0;
    c->enabled = enabled;
    WRITE_ONCE(c->open,
               c->closed |
                   (c->pmu.kind == PMU_P6 ? p6_bit : pmu_global_bits(enabled)));
}

u32 pmu_choose(const struct pmu_cpu *c, u32 allowed)
{
    u32 free = allowed & c->pmu.counters & ~c->enabled;
    return free ? 31 - (u32)__builtin_clz(free) : PMU_NONE;
}

// Sets what counter `n` counts; 0: nothing. Without a gate it runs from now on.
static void program(struct pmu_cpu *c, u32 n, u64 select, u32 fixed)
{
    const struct pmu *p = &c->pmu;
    if (n >= PMU_FIXED) {
        u32 shift = (n - PMU_FIXED) * FIXED_BITS;
        c->fixed_control &= ~(((1ull << FIXED_BITS) - 1) << shift);
        c->fixed_control |= (u64)fixed << shift;
        p->io->write(MSR_FIXED_CTR_CTRL, c->fixed_control);
    } else if (p->kind != PMU_P6) {
        p->io->write(p->counter[n].select, select ? select | SELECT_EN : 0);
    } else if (n) {
        p->io->write(p->counter[n].select, select);
    } else { // written with the gate
        WRITE_ONCE(c->closed, select);
        enable(c, c->enabled);
    }
}

void pmu_count_start(struct pmu_cpu *c, u32 n, const struct pmu_code *code)
{
    pmu_write(&c->pmu, n, 0);
    enable(c, c->enabled | 1u << n);
    program(c, n, code->select, code->fixed);
    pmu_gate(c, true);
}

// Disables freezing (SDM 17.4.7): it stops all counters when an interrupt is
// raised, not when it is served, and so distorts the other counters' counts.
static void dont_freeze(const struct pmu *p)
{
    u64 control;
    if (p->global_control && p->io->read(MSR_DEBUGCTL, &control) &&
        control & DEBUGCTL_FREEZE_PERFMON)
        p->io->write(MSR_DEBUGCTL, control & ~(u64)DEBUGCTL_FREEZE_PERFMON);
}

void pmu_sample_start(struct pmu_cpu *c, u32 n, const struct pmu_code *code,
                      u64 period)
{
    u32 bit = 1u << n;
    struct pmu_slot *s = &c->slot[n];
    s->value = c->pmu.counter[n].value;
    s->sign = pmu_sign(&c->pmu.counter[n]);
    s->status = pmu_global_bits(bit);
    if (!c->sampling) {
        dont_freeze(&c->pmu);
        c->pmu.io->unmask_lvt();
    }
    pmu_take_overflows(c, bit); // left over from counting without sampling
    s->period = period;
    pmu_load_period(c, s, period);
    WRITE_ONCE(c->sampling, c->sampling | bit);
    enable(c, c->enabled | bit);
    program(c, n, code->select | SELECT_INT, code->fixed | FIXED_PMI);
    pmu_gate(c, true);
}

// Counter `n`, stopped, may have overflowed just before, with its NMI still to
// arrive (on AMD's CPUs some time later). Then that NMI is owed.
static void disarm(struct pmu_cpu *c, u32 n)
{
    u32 bit = 1u << n, owed = READ_ONCE(c->owed);
    WRITE_ONCE(c->owed, OWED_STOPPED);
    // From here on the handler recognises the NMI by `owed` alone. Before, it
    // has served and reloaded the counter as ever.
    WRITE_ONCE(c->sampling, c->sampling & ~bit);
    if (!pmu_take_overflows(c, bit) && READ_ONCE(c->owed) == OWED_STOPPED)
        WRITE_ONCE(c->owed, owed); // this counter owes none
    if (!c->sampling)
        c->pmu.io->mask_lvt();
}

void pmu_stop(struct pmu_cpu *c, u32 n)
{
    u32 bit = 1u << n;
    enable(c, c->enabled & ~bit);
    program(c, n, 0, 0);
    pmu_gate(c, true); // if there is no gate, it has stopped already
    if (c->sampling & bit)
        disarm(c, n);
}
