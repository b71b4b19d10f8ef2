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
#include "arch/instructions.h"

// An overflow in progress when the gate closes shows up late. More rounds than
// this mean that a status bit is stuck.
#define ROUNDS_MAX 8

static ALWAYS_INLINE bool negative(u32 sign, u64 value)
{
    return (u32)(value >> 32) & sign;
}

// The status bits of `among`, and those of no counter (all in the upper half).
static ALWAYS_INLINE u64 status_of(const struct pmu *p, u32 among)
{
    u64 status = p->io->get(p->global_status);
    u32 fixed = among >> PMU_FIXED | (u32)(p->other_status >> 32);
    return (u64)((u32)(status >> 32) & fixed) << 32 |
           ((u32)status & among & PMU_GENERAL_MASK);
}

// Acknowledges only the bits of `among` and those of no counter: the bit of
// another counter is the only trace of an overflow whose NMI is still to
// arrive.
static u32 acknowledged(const struct pmu *p, u32 among)
{
    u64 status = status_of(p, among);
    if (status)
        p->io->set(status, p->global_reset);
    return pmu_of_global_bits(status);
}

u32 pmu_take_overflows(const struct pmu_cpu *c, u32 among)
{
    const struct pmu *p = &c->pmu;
    if (p->global_status)
        return acknowledged(p, among);
    u32 found = 0;
    for (u32 left = among; left; left &= left - 1) {
        u32 n = (u32)__builtin_ctz(left);
        if (!negative(pmu_sign(&p->counter[n]), pmu_read(p, n)))
            found |= 1u << n;
    }
    return found;
}

// `past` events of the next period are over.
static NOTRACE NOINLINE void begin_period(const struct pmu_cpu *c,
                                          struct pmu_slot *s, u32 past)
{
    pmu_load_period(c, s, past < s->period ? s->period - past : 1);
}

// The counter has counted what it was loaded with, plus `past` events. That may
// be the middle of a long period, or several short ones.
static NOTRACE NOINLINE void serve_any(struct pmu_cpu *c, struct pmu_slot *s,
                                       u32 past, const struct trapframe *tf)
{
    u32 periods = 1;
    if (past < s->rest) {
        pmu_load_period(c, s, s->rest - past);
        return;
    }
    past -= (u32)s->rest;
    if (past >= s->period) {
        periods += past / (u32)s->period;
        past %= (u32)s->period;
    }
    s->period = s->user->due(s->user, tf, periods);
    begin_period(c, s, past);
}

// The counter has passed its overflow by `past` events.
static ALWAYS_INLINE void serve(struct pmu_cpu *c, struct pmu_slot *s, u32 past,
                                const struct trapframe *tf)
{
    if (unlikely(past >= s->limit)) {
        serve_any(c, s, past, tf);
        return;
    }
    u64 period = s->period = s->user->due(s->user, tf, 1);
    u32 load = past - (u32)period; // negative
    if (unlikely((s32)load >= 0 || period >> 32)) {
        begin_period(c, s, past);
        return;
    }
    s->limit = (u32)period;
    pmu_load(c, s, -load);
}

static ALWAYS_INLINE struct pmu_slot *slot_of(struct pmu_cpu *c, u32 counters)
{
    return OPAQUE(&c->slot[__builtin_ctz(counters)]);
}

// An NMI that has served `served` counters. True: at least one, or it was owed.
static NOTRACE NOINLINE bool note_owed(struct pmu_cpu *c, u32 eip, u32 served)
{
    u32 owed = READ_ONCE(c->owed);
    if (!served) {
        WRITE_ONCE(c->owed, OWED_NONE);
        if (owed == OWED_NONE || (owed == OWED_AT_EIP && c->owed_eip != eip))
            return false;
        ADD_ONCE(c->repeated, 1);
        return true;
    }
    if (owed == OWED_STOPPED)
        return true; // that NMI has not arrived yet
    // If this NMI was the owed one, the overflow it found has its own NMI.
    if (owed != OWED_NONE && c->owed_eip == eip)
        served++;
    u32 more = c->pmu.kind == PMU_AMD ? OWED_NEXT : OWED_AT_EIP;
    c->owed_eip = eip;
    WRITE_ONCE(c->owed, served > 1 ? more : OWED_NONE);
    return true;
}

static ALWAYS_INLINE bool done(struct pmu_cpu *c, u32 eip, u32 served)
{
    return likely(served == 1 && c->owed == OWED_NONE) ||
           note_owed(c, eip, served);
}

// The gate is closed. Unmasks at least once, even if nothing is found: the NMI
// of a counter that has just been stopped has masked LVT PC, too. Returns how
// many counters it has served.
static NOTRACE NOINLINE u32 serve_by_status(struct pmu_cpu *c,
                                            const struct trapframe *tf)
{
    u32 served = 0, rounds = ROUNDS_MAX, sampling = READ_ONCE(c->sampling);
    while (sampling && rounds--) {
        u32 left = acknowledged(&c->pmu, sampling);
        for (; left; left &= left - 1, served++) {
            struct pmu_slot *s = slot_of(c, left);
            u64 value = c->get(s->value);
            serve(c, s, negative(s->sign, value) ? 0 : (u32)value, tf);
        }
        c->unmask_lvt();
        if (!status_of(&c->pmu, sampling))
            break;
    }
    return served;
}

static bool overflow_by_status(struct pmu_cpu *c, const struct trapframe *tf,
                               u32 eip)
{
    const struct pmu *p = &c->pmu;
    u32 served = 0;
    c->set(c->closed, c->gate);
    u64 status = c->get(p->global_status);
    u32 found = pmu_of_global_bits(status) & READ_ONCE(c->sampling);
    // Usually there is one overflow: one counter is served here, the others,
    // and what else the status shows, in a loop.
    if (likely(found)) {
        struct pmu_slot *s = slot_of(c, found);
        c->set(s->status, p->global_reset);
        u64 value = c->get(s->value);
        serve(c, s, negative(s->sign, value) ? 0 : (u32)value, tf);
        c->unmask_lvt();
        status = c->get(p->global_status);
        served = 1;
    }
    if (unlikely(status || !found))
        served += serve_by_status(c, tf);
    c->set(c->open, c->gate);
    return done(c, eip, served);
}

static bool overflow_by_sign(struct pmu_cpu *c, const struct trapframe *tf,
                             u32 eip)
{
    u32 served = 0, left = READ_ONCE(c->sampling);
    pmu_gate(c, false);
    if (left)
        c->unmask_lvt();
    for (; left; left &= left - 1) {
        struct pmu_slot *s = slot_of(c, left);
        u64 value = c->get(s->value);
        if (negative(s->sign, value))
            continue;
        serve(c, s, (u32)value, tf);
        served++;
    }
    pmu_gate(c, true);
    return done(c, eip, served);
}

void pmu_set_handler(struct pmu_cpu *c)
{
    const struct pmu_io *io = c->pmu.io;
    c->get = io->get;
    c->set = io->set;
    c->unmask_lvt = io->unmask_lvt;
    c->overflow = c->pmu.global_status ? overflow_by_status : overflow_by_sign;
}
