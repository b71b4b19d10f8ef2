// Starting, stopping and reading single counters.
//
// An NMI may occur between any two instructions here, and its handler opens and
// closes the gate. So a counter is added to the masks before it runs, and
// removed from them before it is stopped: what the handler writes to the gate
// is then correct at any moment, and it never restarts a counter that is being
// stopped.

#include "arch/i386/pmu/counters.h"

bool pmu_write(const struct pmu *p, u32 n, u64 events)
{
    const struct pmu_counter *c = &p->counter[n];
    return p->io->write(c->value, -events & ((1ull << c->width) - 1));
}

NOTRACE void pmu_load_first(struct pmu_cpu *c, u32 n, u64 events)
{
    u32 first = events > PMU_LOAD_MAX ? PMU_LOAD_MAX : (u32)events;
    c->slot[n].rest = events - first;
    pmu_load(c, n, first);
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
        WRITE_ONCE(c->select0, (u32)select);
    }
}

void pmu_count_start(struct pmu_cpu *c, u32 n, const struct pmu_code *code)
{
    pmu_write(&c->pmu, n, 0);
    WRITE_ONCE(c->enabled, c->enabled | 1u << n);
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
    if (!c->sampling) {
        dont_freeze(&c->pmu);
        c->pmu.io->unmask_lvt();
    }
    pmu_take_overflows(c, bit); // left over from counting without sampling
    c->slot[n].period = period;
    pmu_load_first(c, n, period);
    WRITE_ONCE(c->sampling, c->sampling | bit);
    __atomic_fetch_or(&c->armed, bit, __ATOMIC_SEQ_CST);
    WRITE_ONCE(c->enabled, c->enabled | bit);
    program(c, n, code->select | SELECT_INT, code->fixed | FIXED_PMI);
    pmu_gate(c, true);
}

// Counter `n`, stopped, may have overflowed just before, with its NMI still to
// arrive (on AMD's CPUs some time later). Then that NMI is owed.
static void disarm(struct pmu_cpu *c, u32 n)
{
    u32 bit = 1u << n, owed = READ_ONCE(c->owed);
    WRITE_ONCE(c->owed, OWED_STOPPED);
    // From here on the handler recognises the NMI by `owed` alone.
    u32 before = __atomic_fetch_and(&c->armed, ~bit, __ATOMIC_SEQ_CST);
    bool overflowed = pmu_take_overflows(c, bit);
    bool served = !(before & bit);
    if ((served || !overflowed) && READ_ONCE(c->owed) == OWED_STOPPED)
        WRITE_ONCE(c->owed, owed); // this counter owes none
    if (!c->sampling)
        c->pmu.io->mask_lvt();
}

void pmu_stop(struct pmu_cpu *c, u32 n)
{
    u32 bit = 1u << n;
    bool sampled = c->sampling & bit;
    WRITE_ONCE(c->sampling, c->sampling & ~bit);
    WRITE_ONCE(c->enabled, c->enabled & ~bit);
    program(c, n, 0, 0);
    pmu_gate(c, true); // if there is no gate, it has stopped already
    if (sampled)
        disarm(c, n);
}
