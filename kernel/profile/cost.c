// The cost of sampling, and which sessions are charged with it.
//
// The ledger accounts the time of interrupts that take samples, from a TSC
// reading at their entry to one at their exit: NMIs in their vector's account,
// other interrupts in that of LEDGER_SAMPLING. The cost outside of the two
// readings is constant, and is measured when the first session begins. So
// taking a sample needs no accounting of its own. Samples of trace points are
// no interrupts: they measure themselves.
//
// Sessions that are sampled by the same interrupts share their cost. On each
// CPU the cost of its NMIs, and that of its other interrupts, since the last
// division is divided in proportion to the number of interrupts that each
// session was offered. This happens whenever a session begins or ceases to
// count, or is queried.

#include "arch/clock.h"
#include "arch/irq.h"
#include "arch/trap.h"
#include "kernel/profile/expected_samples.h"
#include "kernel/profile/offered.h"
#include "kernel/profile/session_private.h"
#include "kernel/task/task.h"
#include "kernel/time/ledger.h"

struct entry_cost entry_cost;

// Cycles charged so far; streams_lock
static u64 divided[CPU_MAX][SAMPLE_WAYS];

void cost_measure(void)
{
    mutex_assert_held(&streams_lock);
    if (!entry_cost.nmi)
        entry_cost = trap_entry_cost();
}

// A tick of which no sample is taken costs up to 6 entries by NMI, 14 by
// another interrupt. Ticks that come as fast as they are handled leave a CPU no
// time.
#define ENTRIES_BETWEEN_NMIS 10u
#define ENTRIES_BETWEEN_IRQS 20u

u32 cost_highest_hz(const struct sample_source *s)
{
    bool nmi = s->nmi && !s->sends;
    u32 least = nmi ? entry_cost.nmi * ENTRIES_BETWEEN_NMIS
                    : entry_cost.irq * ENTRIES_BETWEEN_IRQS;
    return least ? (u32)MIN(clock_tsc_hz() / least, (u64)UINT32_MAX)
                 : UINT32_MAX;
}

// TSC cycles of all interrupts of a CPU that took samples, or could have; of
// all samples of trace points.
static u64 cycles_of(u32 cpu, enum sample_way way)
{
    struct ledger *l = cpus[cpu]->ledger;
    bool nmi = way == BY_NMI;
    if (way == BY_POINT)
        return point_cycles(cpu);
    u32 vector = nmi ? VECTOR_NMI : LEDGER_SAMPLING;
    u64 accounted = ledger_read(cpus[cpu], &l->vectors[vector]);
    u64 overhead = nmi ? entry_cost.nmi : entry_cost.irq;
    if (nmi)
        accounted += counter_read(&l->nmi_unaccounted);
    return accounted + irq_count(cpu, vector) * overhead;
}

static enum sample_way way_of(const struct sample_source *s, u32 cpu)
{
    if (s->point)
        return BY_POINT;
    return s->nmi && !(s->sends && cpu == 0) ? BY_NMI : BY_IRQ;
}

// Interrupts that a session was offered since the costs were last divided: read
// once, as it may be offered more of them concurrently.
static u64 newly_offered(const struct session *s, struct session_cpu *c,
                         enum sample_way way)
{
    u32 cpu = (u32)(c - s->cpu);
    c->newly = 0;
    if (way_of(s->source, cpu) == way)
        c->newly = offered_newly(&c->charged_for, c->taken, MODES + 1);
    return c->newly;
}

static void divide(u32 cpu, enum sample_way way)
{
    u64 so_far = cycles_of(cpu, way), whole = so_far - divided[cpu][way];
    u64 all = 0;
    divided[cpu][way] = so_far;
    FOR_EACH_SESSION(s)
    all += newly_offered(s, &s->cpu[cpu], way);
    FOR_EACH_SESSION(s)
    {
        u64 n = s->cpu[cpu].newly;
        s->cost += expected_share(whole, n, all - n);
        s->interrupts += n;
    }
}

void costs_divide(void)
{
    mutex_assert_held(&streams_lock);
    for (u32 cpu = 0; cpu < cpu_count; cpu++) {
        for (u32 way = 0; way < SAMPLE_WAYS; way++)
            divide(cpu, way);
    }
}

u64 cost_of_tool(struct session *s)
{
    u64 user, kernel;
    task_times(s->stream.profiler, &user, &kernel);
    return user + kernel;
}
