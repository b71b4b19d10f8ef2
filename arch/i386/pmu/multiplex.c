// Multiplexing: more events than counters.
//
// Each event's count has two times: how long the event was wanted (`enabled`),
// and how long it had a counter (`running`). Count * enabled / running
// estimates what a dedicated counter would have shown. If running is 0 the
// count is unknown, and no value may be reported.

#include "arch/i386/pmu/counters.h"

static void next_turn(struct pmu_group *g)
{
    g->first = g->next;
    g->turns++;
    g->turned = g->count[0].enabled;
}

void pmu_group_in(struct pmu_cpu *c, struct pmu_group *g, u64 now)
{
    if (g->turn && g->count[0].enabled - g->turned >= g->turn)
        next_turn(g);
    g->next = g->first;
    for (u32 k = 0; k < g->events; k++) {
        u32 i = (g->first + k) % g->events;
        u32 n = pmu_choose(c, g->code[i].counters);
        g->counter[i] = (u8)n;
        g->start[i] = 0;
        if (n != PMU_NONE)
            pmu_count_start(c, n, &g->code[i]);
        else if (g->next == g->first)
            g->next = i;
    }
    g->since = now;
}

void pmu_group_update(struct pmu_cpu *c, struct pmu_group *g, u64 now)
{
    u64 time = now - g->since;
    g->since = now;
    for (u32 i = 0; i < g->events; i++) {
        struct pmu_count *count = &g->count[i];
        u32 n = g->counter[i];
        count->enabled += time;
        if (n == PMU_NONE)
            continue;
        u64 value = pmu_read(&c->pmu, n);
        u64 mask = (1ull << c->pmu.counter[n].width) - 1;
        u64 passed = (value - g->start[i]) & mask;
        struct pmu_part *part = &g->part[i][g->turns % PMU_PARTS];
        count->value += passed;
        count->running += time;
        part->value += passed;
        part->running += time;
        g->start[i] = value;
    }
}

void pmu_group_out(struct pmu_cpu *c, struct pmu_group *g, u64 now)
{
    pmu_group_update(c, g, now);
    for (u32 i = 0; i < g->events; i++) {
        if (g->counter[i] != PMU_NONE)
            pmu_stop(c, g->counter[i]);
        g->counter[i] = PMU_NONE;
    }
}

void pmu_group_rotate(struct pmu_cpu *c, struct pmu_group *g, u64 now)
{
    bool all = true;
    for (u32 i = 0; i < g->events; i++)
        all &= g->counter[i] != PMU_NONE;
    if (all) {
        pmu_group_update(c, g, now);
        return;
    }
    pmu_group_out(c, g, now);
    next_turn(g);
    pmu_group_in(c, g, now);
}
