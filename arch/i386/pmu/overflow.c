// Counter overflows: the performance monitoring interrupt, as an NMI.
//
// Intel CPUs mask LVT PC with each interrupt, and an overflow while it is
// masked, or while its status bit is still set, raises none: sampling would
// then have stopped for good. So the order of steps matters (SDM 18.2.x,
// 10.5.4, 17.4.7), and tests/host/test_pmu_sampling.c shows that other orders
// lose interrupts.
//
// With status bits, and a gate that stops all counters: close the gate; then
// acknowledge, serve and reload the overflowed counters and unmask, until no
// more overflows are found (some may happen while the gate closes); then open
// the gate.
//
// Without status bits (P6, version 1, AMD before PerfMonV2) a counter's sign
// shows its overflow, as it was loaded with a negative number: unmask first;
// then read the counters, so that a later overflow interrupts again; reload
// last.
//
// Two counters may overflow at once. The first NMI serves both; if the second's
// NMI has been latched by then, its handler finds no overflow. That NMI is
// owed, not unknown: it arrives immediately after, at the same instruction, on
// AMD CPUs a few instructions later. The same holds for a counter that was
// stopped before its NMI arrived (counter.c).
//
// NMI context: no locks; only this CPU's data; only registers that were tried
// before.

#include "arch/i386/pmu/counters.h"
#include "arch/i386/pmu/registers.h"
#include "arch/instructions.h"

// An overflow in progress when the gate closes shows up late. More rounds than
// this mean that a status bit is stuck.
#define ROUNDS_MAX 8

static bool negative(const struct pmu_counter *c, u64 value)
{
    return value >> (c->width - 1) & 1;
}

// Acknowledges only the bits of `among` and those of no counter: the bit of
// another counter is the only trace of an overflow whose NMI is still to
// arrive.
static u32 acknowledged(const struct pmu *p, u32 among)
{
    u64 status = 0;
    p->io->read(p->global_status, &status);
    u64 ours = status & (pmu_global_bits(among) | p->other_status);
    if (ours)
        p->io->write(p->global_reset, ours);
    return ((u32)(status & PMU_GENERAL_MASK) |
            (u32)(status >> GLOBAL_FIXED_SHIFT) << PMU_FIXED) &
           among;
}

u32 pmu_take_overflows(const struct pmu_cpu *c, u32 among)
{
    const struct pmu *p = &c->pmu;
    if (p->global_status)
        return acknowledged(p, among);
    u32 found = 0;
    for (u32 left = among; left; left &= left - 1) {
        u32 n = (u32)__builtin_ctz(left);
        if (!negative(&p->counter[n], pmu_read(p, n)))
            found |= 1u << n;
    }
    return found;
}

// The counter has counted what it was loaded with, plus `past` events. Returns
// the number of periods that have ended: 0 in the middle of a long one. *into:
// events already counted of the next one.
static u32 periods_passed(struct pmu_slot *s, u64 past, u64 *into)
{
    past += s->loaded;
    if (past < s->left) {
        s->left -= past;
        return 0;
    }
    *into = past - s->left;
    if (likely(*into < s->period))
        return 1;
    u32 more = (u32)(*into / s->period);
    *into %= s->period;
    return 1 + more;
}

static void serve(struct pmu_cpu *c, u32 n, pmu_sample_fn sample, void *arg)
{
    struct pmu_slot *s = &c->slot[n];
    u64 value = pmu_read(&c->pmu, n), into = 0;
    bool wrapped = !negative(&c->pmu.counter[n], value);
    u32 weight = periods_passed(s, wrapped ? value : 0, &into);
    if (weight) {
        u64 next = sample(arg, n, weight);
        if (next)
            s->period = next;
        s->left = into < s->period ? s->period - into : 1;
    }
    pmu_load(c, n);
}

// Serves the counters in `overflowed`; returns how many.
static u32 serve_all(struct pmu_cpu *c, u32 overflowed, pmu_sample_fn sample,
                     void *arg)
{
    u32 sampling = READ_ONCE(c->sampling), served = 0;
    for (u32 left = overflowed; left; left &= left - 1, served++) {
        u32 n = (u32)__builtin_ctz(left);
        if (sampling & 1u << n)
            serve(c, n, sample, arg);
        else // being stopped: only record that its NMI has arrived
            __atomic_fetch_and(&c->armed, ~(1u << n), __ATOMIC_SEQ_CST);
    }
    return served;
}

// Unmasks at least once, even if nothing is found: the NMI of a counter that
// has just been stopped has masked LVT PC, too.
static u32 serve_by_status(struct pmu_cpu *c, pmu_sample_fn sample, void *arg)
{
    u32 served = 0;
    for (u32 round = 0; round < ROUNDS_MAX; round++) {
        u32 overflowed = pmu_take_overflows(c, READ_ONCE(c->armed));
        if (round && !overflowed)
            break;
        served += serve_all(c, overflowed, sample, arg);
        c->pmu.io->unmask_lvt();
    }
    return served;
}

static u32 serve_by_sign(struct pmu_cpu *c, pmu_sample_fn sample, void *arg)
{
    c->pmu.io->unmask_lvt();
    return serve_all(c, pmu_take_overflows(c, READ_ONCE(c->armed)), sample,
                     arg);
}

static bool was_owed(struct pmu_cpu *c, u32 eip)
{
    u32 owed = READ_ONCE(c->owed);
    WRITE_ONCE(c->owed, OWED_NONE);
    if (owed == OWED_NONE || (owed == OWED_AT_EIP && c->owed_eip != eip))
        return false;
    ADD_ONCE(c->repeated, 1);
    return true;
}

static void note_owed(struct pmu_cpu *c, u32 eip, u32 served)
{
    if (c->owed == OWED_STOPPED)
        return; // that NMI has not arrived yet
    // If this NMI was the owed one, the overflow it found has its own NMI.
    if (c->owed != OWED_NONE && c->owed_eip == eip)
        served++;
    u32 more = c->pmu.kind == PMU_AMD ? OWED_NEXT : OWED_AT_EIP;
    c->owed_eip = eip;
    WRITE_ONCE(c->owed, served > 1 ? more : OWED_NONE);
}

bool pmu_overflow(struct pmu_cpu *c, u32 eip, pmu_sample_fn sample, void *arg)
{
    u32 served = 0;
    if (READ_ONCE(c->armed)) {
        pmu_gate(c, false);
        served = c->pmu.global_status ? serve_by_status(c, sample, arg)
                                      : serve_by_sign(c, sample, arg);
        pmu_gate(c, true);
    }
    if (!served)
        return was_owed(c, eip);
    note_owed(c, eip, served);
    return true;
}
