#include "kernel/time/ledger.h"

_Static_assert(offsetof(struct ledger, open) == 0 &&
                   offsetof(struct ledger, seq) == 4 &&
                   offsetof(struct ledger, user) == 8 &&
                   offsetof(struct ledger, kernel) == 16,
               "ledger_switch knows these");

static struct ledger ledgers[CPU_MAX];

void ledger_init_cpu(struct cpu *cpu)
{
    struct ledger *l = &ledgers[cpu->id];
    l->began = rdtsc();
    l->start_up.cycles = -l->began;
    l->open = &l->start_up;
    cpu->ledger = l;
}

struct account *ledger_irq_enter(u32 vector, bool from_user)
{
    struct ledger *l = this_ledger();
    struct account *interrupted = l->open, *next = &l->vectors[vector];
    if (from_user)
        LEDGER_MOVE(l, next, CLOSE_USER);
    else if (interrupted == &l->idle)
        LEDGER_MOVE(l, next, );
    else
        LEDGER_MOVE(l, next, CLOSE_KERNEL);
    return interrupted;
}

void ledger_irq_leave(struct account *interrupted, bool from_user,
                      struct account *kernel)
{
    struct ledger *l = this_ledger();
    if (interrupted == &l->idle)
        LEDGER_MOVE(l, interrupted, );
    else
        LEDGER_MOVE(l, from_user ? kernel : interrupted, OPEN_KERNEL);
}

// Begin and end of a read that must not see half of a switch. What is read in
// between is written by the switches (assembly) of its CPU at any time, so it
// is marked; what was read of an unfinished switch is thrown away.
static u32 read_begin(const struct ledger *l)
{
    u32 seq;
    while ((seq = __atomic_load_n(&l->seq, __ATOMIC_ACQUIRE)) & 1)
        cpu_relax();
    return seq;
}

static bool read_retry(const struct ledger *l, u32 seq)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return READ_ONCE(l->seq) != seq;
}

u64 ledger_read(const struct cpu *cpu, const struct account *a)
{
    const struct ledger *l = &ledgers[cpu->id];
    u64 cycles;
    u32 seq;
    do {
        seq = read_begin(l);
        cycles = READ_ONCE(a->cycles);
        if (READ_ONCE(l->open) == a)
            cycles += rdtsc();
    } while (read_retry(l, seq));
    return cycles;
}

// A total that is open is negative, for what was subtracted is the TSC and what
// it had was less: the time since is its own.
static u64 total(u64 value, u64 now)
{
    return (s64)value < 0 ? value + now : value;
}

void ledger_sums_at(u32 cpu, u64 now, struct ledger_sums *out)
{
    const struct ledger *l = &ledgers[cpu];
    *out = (struct ledger_sums){ 0 };
    if (!l->began)
        return;
    for (u32 v = 0; v < ARRAY_SIZE(l->vectors); v++)
        out->irq += total(READ_ONCE(l->vectors[v].cycles), now);
    out->idle = total(READ_ONCE(l->idle.cycles), now);
    out->start_up = total(READ_ONCE(l->start_up.cycles), now);
    out->user = total(READ_ONCE(l->user), now);
    out->kernel = total(READ_ONCE(l->kernel), now);
    out->elapsed = now - l->began;
}

void ledger_sums(u32 cpu, struct ledger_sums *out)
{
    const struct ledger *l = &ledgers[cpu];
    u32 seq;
    do {
        seq = read_begin(l);
        ledger_sums_at(cpu, rdtsc(), out);
    } while (read_retry(l, seq));
}
