#include "kernel/time/ledger.h"

#include "arch/irq.h"
#include "arch/trap.h"
#include "kernel/sched/thread.h"

static struct ledger ledgers[CPU_MAX];

void ledger_init_cpu(struct cpu *cpu)
{
    struct ledger *l = &ledgers[cpu->id];
    l->began = l->since = rdtsc();
    l->open = &l->start_up;
    cpu->ledger = l;
}

// Leaves user mode for `next`: the stretch also counts as this CPU's user time.
static ALWAYS_INLINE void leave_user(struct ledger *l, struct account *next)
{
    u64 opened = l->since;
    ledger_switch(next);
    l->user += l->since - opened;
}

void ledger_from_user(void)
{
    leave_user(this_cpu()->ledger, &current->kernel);
}

void ledger_to_user(void)
{
    ledger_switch(&current->user);
}

struct account *ledger_irq_enter(u32 vector, bool from_user)
{
    struct ledger *l = this_cpu()->ledger;
    struct account *interrupted = l->open;
    if (from_user)
        leave_user(l, &l->vectors[vector]);
    else
        ledger_switch(&l->vectors[vector]);
    return interrupted;
}

void ledger_irq_leave(struct account *interrupted, bool from_user)
{
    ledger_switch(from_user ? &current->kernel : interrupted);
}

u64 account_read(const struct account *a)
{
    for (;;) {
        u32 before = READ_ONCE(a->seq);
        barrier();
        u64 cycles = a->cycles;
        barrier();
        if (!(before & 1) && READ_ONCE(a->seq) == before)
            return cycles;
        cpu_relax();
    }
}

void ledger_sums(u32 cpu, struct ledger_sums *out)
{
    struct ledger *l = &ledgers[cpu];
    *out = (struct ledger_sums){ 0 };
    if (!l->began)
        return;
    out->user = l->user;
    for (u32 v = 0; v < ARRAY_SIZE(l->vectors); v++)
        out->irq += account_read(&l->vectors[v]);
    out->idle = account_read(&l->idle);
    // The stretch that is open now is idle time only if idle is open.
    u64 since = READ_ONCE(l->since), now = rdtsc();
    if (READ_ONCE(l->open) == &l->idle && now > since)
        out->idle += now - since;
    out->elapsed = now - l->began;
}
