// Counting sessions: a group of events on each CPU.

#include "arch/clock.h"
#include "arch/i386/pmu/machine.h"
#include "kernel/base/errno.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "lib/string.h"

struct pmu_counting {
    u32 events;
    struct per_cpu {
        struct pmu_group group;
        bool in;
        // For pmu_counting_read and pmu_counting_parts.
        struct pmu_count copy[PMU_GROUP_EVENTS];
        struct pmu_part parts[PMU_GROUP_EVENTS][PMU_PARTS];
    } cpu[]; // of each CPU
};

static u32 bytes_of_all(void)
{
    return sizeof(struct pmu_counting) + cpu_count * sizeof(struct per_cpu);
}

static u32 pages_of_all(void)
{
    return DIV_ROUND_UP(bytes_of_all(), PAGE_SIZE);
}

static struct per_cpu *this_cpu_state(struct pmu_counting *c)
{
    return &c->cpu[this_cpu()->id];
}

int pmu_counting_create(const struct pmu_event *events, u32 count,
                        struct pmu_counting **out)
{
    if (pmu_why_not())
        return -ENODEV;
    if (!count || count > PMU_GROUP_EVENTS)
        return -EINVAL;
    struct pmu_counting *c =
        vmap_alloc(pages_of_all(), PROT_R | PROT_W, FRAME_BUFFER);
    if (!c)
        return -ENOMEM;
    memset(c, 0, bytes_of_all());
    c->events = count;
    for (u32 i = 0; i < cpu_count; i++) {
        struct pmu_group *g = &c->cpu[i].group;
        g->events = count;
        g->turn = clock_tsc_hz() / (NSEC_PER_SEC / PMU_TURN_NS);
        for (u32 e = 0; e < count; e++) {
            if (!pmu_encode(&pmu_cpus[i]->pmu, &events[e], &g->code[e]))
                continue;
            pmu_counting_destroy(c);
            return -EINVAL;
        }
    }
    *out = c;
    return 0;
}

void pmu_counting_destroy(struct pmu_counting *c)
{
    vmap_free(c, pages_of_all());
}

void pmu_counting_in(struct pmu_counting *c)
{
    this_cpu_state(c)->in = true;
    pmu_group_in(pmu_this_cpu(), &this_cpu_state(c)->group, rdtsc());
}

void pmu_counting_out(struct pmu_counting *c)
{
    this_cpu_state(c)->in = false;
    pmu_group_out(pmu_this_cpu(), &this_cpu_state(c)->group, rdtsc());
}

bool pmu_counting_turn(struct pmu_counting *c)
{
    if (!this_cpu_state(c)->in)
        return false;
    pmu_group_rotate(pmu_this_cpu(), &this_cpu_state(c)->group, rdtsc());
    return !pmu_counting_is_exact(c);
}

// Each CPU fills its own copy, which is constant until the next read.
static void copy_here(void *arg)
{
    struct per_cpu *p = this_cpu_state(arg);
    if (p->in)
        pmu_group_update(pmu_this_cpu(), &p->group, rdtsc());
    memcpy(p->copy, p->group.count, sizeof(p->copy));
    memcpy(p->parts, p->group.part, sizeof(p->parts));
}

void pmu_counting_read(struct pmu_counting *c, struct pmu_count *counts)
{
    smp_call_all(copy_here, c);
    memset(counts, 0, c->events * sizeof(*counts));
    for (u32 i = 0; i < cpu_count; i++) {
        for (u32 e = 0; e < c->events; e++) {
            counts[e].value += c->cpu[i].copy[e].value;
            counts[e].enabled += c->cpu[i].copy[e].enabled;
            counts[e].running += c->cpu[i].copy[e].running;
        }
    }
}

void pmu_counting_parts(const struct pmu_counting *c, u32 event,
                        struct pmu_part parts[PMU_PARTS])
{
    assert(event < c->events);
    memset(parts, 0, PMU_PARTS * sizeof(*parts));
    for (u32 i = 0; i < cpu_count; i++) {
        for (u32 k = 0; k < PMU_PARTS; k++) {
            parts[k].value += c->cpu[i].parts[event][k].value;
            parts[k].running += c->cpu[i].parts[event][k].running;
        }
    }
}

void pmu_counting_read_here(struct pmu_counting *c, struct pmu_count *counts)
{
    struct pmu_group *g = &this_cpu_state(c)->group;
    pmu_group_update(pmu_this_cpu(), g, rdtsc());
    memcpy(counts, g->count, c->events * sizeof(*counts));
}

bool pmu_counting_is_exact(struct pmu_counting *c)
{
    for (u32 i = 0; i < c->events; i++) {
        if (this_cpu_state(c)->group.counter[i] == PMU_NONE)
            return false;
    }
    return true;
}
