#include "kernel/time/ledger.h"

_Static_assert(offsetof(struct ledger, open) == 0 &&
                   offsetof(struct ledger, seq) == 4 &&
                   offsetof(struct ledger, user) == 8,
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
    struct account *interrupted = l->open;
    if (from_user)
        ledger_switch_from_user(&l->vectors[vector]);
    else
        ledger_switch(&l->vectors[vector]);
    return interrupted;
}

// Begin and end of a read that must not see half of a switch.
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
        cycles = a->cycles;
        if (READ_ONCE(l->open) == a)
            cycles += rdtsc();
    } while (read_retry(l, seq));
    return cycles;
}

static bool is_vector(const struct ledger *l, const struct account *a)
{
    return a >= l->vectors && a < l->vectors + ARRAY_SIZE(l->vectors);
}

void ledger_sums(u32 cpu, struct ledger_sums *out)
{
    const struct ledger *l = &ledgers[cpu];
    *out = (struct ledger_sums){ 0 };
    if (!l->began)
        return;
    u32 seq;
    do {
        seq = read_begin(l);
        const struct account *open = READ_ONCE(l->open);
        u64 irq = 0, now = rdtsc();
        for (u32 v = 0; v < ARRAY_SIZE(l->vectors); v++)
            irq += l->vectors[v].cycles;
        out->irq = irq + (is_vector(l, open) ? now : 0);
        out->idle = l->idle.cycles + (open == &l->idle ? now : 0);
        // The user total is negative exactly while a user account is open.
        out->user = l->user + ((s64)l->user < 0 ? now : 0);
        out->elapsed = now - l->began;
    } while (read_retry(l, seq));
}
