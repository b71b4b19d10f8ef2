// Each CPU's topology, which it reads at its start and which does not change.
#include "arch/i386/cpu/topology.h"

#include "arch/i386/cpu/arch_cpu.h"
#include "lib/cpu_memory.h"

static struct topology *topologies[CPU_MAX];
CPU_MEMORY(topologies, 1);

void topology_init_cpu(void)
{
    struct cpu *c = this_cpu();
    topology_read(cpuid_words, c->apic_id, topologies[c->id]);
}

const struct topology *cpu_topology(u32 cpu)
{
    assert(cpu < cpu_count);
    return topologies[cpu];
}
