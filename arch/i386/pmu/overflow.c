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

static ALWAYS_INLINE bool negative(const struct pmu_counter *c, u64 value)
{
    return (u32)(value >> 32) >> (c->width - 33) & 1;
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
        if (!negative(&p->counter[n], pmu_read(p, n)))
            found |= 1u << n;
    }
    return found;
}

// The counter has counted what it was loaded with, plus `past` events: in the
// middle of a long period it is loaded with the next part.
static NOTRACE NOINLINE bool goes_on(struct pmu_cpu *c, u32 n, u32 *past)
{
    struct pmu_slot *s = &c->slot[n];
    if (*past < s->rest) {
        pmu_load_first(c, n, s->rest - *past);
        return true;
    }
    *past -= (u32)s->rest;
    s->rest = 0;
    return false;
}

// The periods that `past` events are, and the rest.
static NOTRACE NOINLINE u32 whole_periods(u32 *past, u64 period)
{
    if (*past < period)
        return 0;
    u32 whole = *past / (u32)period;
    *past %= (u32)period;
    return whole;
}

// A period of which `past` events are over.
static NOTRACE NOINLINE void begin_period(struct pmu_cpu *c, u32 n, u64 period,
                                          u32 past)
{
    c->slot[n].period = period;
    pmu_load_first(c, n, past < period ? period - past : 1);
}

// `value`: what the counter has just been read to hold.
static ALWAYS_INLINE void serve(struct pmu_cpu *c, u32 n, u64 value,
                                const struct trapframe *tf)
{
    struct pmu_slot *s = &c->slot[n];
    u32 past = negative(&c->pmu.counter[n], value) ? 0 : (u32)value, weight = 1;
    if (unlikely(s->rest) && goes_on(c, n, &past))
        return;
    if (unlikely(past >= (u32)s->period))
        weight += whole_periods(&past, s->period);
    u64 period = s->user->due(s->user, tf, weight);
    if (unlikely(period > PMU_LOAD_MAX || past >= (u32)period)) {
        begin_period(c, n, period, past);
        return;
    }
    s->period = period;
    pmu_load(c, n, (u32)period - past);
}

// Of a counter that is being stopped: only records that its NMI has arrived.
static NOTRACE NOINLINE void disarmed(struct pmu_cpu *c, u32 n)
{
    __atomic_fetch_and(&c->armed, ~(1u << n), __ATOMIC_SEQ_CST);
}

static ALWAYS_INLINE void serve_one(struct pmu_cpu *c, u32 n, u64 value,
                                    const struct trapframe *tf)
{
    if (likely(READ_ONCE(c->sampling) >> n & 1))
        serve(c, n, value, tf);
    else
        disarmed(c, n);
}

// These return how many counters they have served.

// Unmasks at least once, even if nothing is found: the NMI of a counter that
// has just been stopped has masked LVT PC, too.
static ALWAYS_INLINE u32 serve_by_status(struct pmu_cpu *c,
                                         const struct trapframe *tf)
{
    const struct pmu *p = &c->pmu;
    u64 status = status_of(p, READ_ONCE(c->armed));
    u32 served = 0, rounds = ROUNDS_MAX;
    do {
        if (likely(status))
            p->io->set(status, p->global_reset);
        u32 left = pmu_of_global_bits(status);
        for (; left; left &= left - 1, served++) {
            u32 n = (u32)__builtin_ctz(left);
            serve_one(c, n, pmu_read(p, n), tf);
        }
        p->io->unmask_lvt();
        status = status_of(p, READ_ONCE(c->armed));
    } while (unlikely(status) && --rounds);
    return served;
}

static ALWAYS_INLINE u32 serve_by_sign(struct pmu_cpu *c,
                                       const struct trapframe *tf)
{
    u32 served = 0;
    c->pmu.io->unmask_lvt();
    for (u32 left = READ_ONCE(c->armed); left; left &= left - 1) {
        u32 n = (u32)__builtin_ctz(left);
        u64 value = pmu_read(&c->pmu, n);
        if (negative(&c->pmu.counter[n], value))
            continue;
        serve_one(c, n, value, tf);
        served++;
    }
    return served;
}

static NOTRACE NOINLINE bool was_owed(struct pmu_cpu *c, u32 eip)
{
    u32 owed = READ_ONCE(c->owed);
    WRITE_ONCE(c->owed, OWED_NONE);
    if (owed == OWED_NONE || (owed == OWED_AT_EIP && c->owed_eip != eip))
        return false;
    ADD_ONCE(c->repeated, 1);
    return true;
}

static NOTRACE NOINLINE void note_owed(struct pmu_cpu *c, u32 eip, u32 served)
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

bool pmu_overflow(struct pmu_cpu *c, const struct trapframe *tf, u32 eip)
{
    u32 served = 0;
    if (READ_ONCE(c->armed)) {
        pmu_gate(c, false);
        served = c->pmu.global_status ? serve_by_status(c, tf)
                                      : serve_by_sign(c, tf);
        pmu_gate(c, true);
    }
    if (!served)
        return was_owed(c, eip);
    if (unlikely(served > 1 || c->owed != OWED_NONE))
        note_owed(c, eip, served);
    return true;
}
