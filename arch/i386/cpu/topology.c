// Each CPU's topology, which it reads at its start and which does not change.
#include "arch/i386/cpu/topology.h"

#include "arch/i386/cpu/arch_cpu.h"
#include "lib/cpu_memory.h"
#include "lib/string.h"

static struct topology *topologies[CPU_MAX];
CPU_MEMORY(topologies, 1);

static void read_cpuid(u32 leaf, u32 subleaf, u32 registers[4])
{
    struct cpuid r = cpuid(leaf, subleaf);
    memcpy(registers, &r, sizeof(r));
}

void topology_init_cpu(void)
{
    topology_read(read_cpuid, topologies[this_cpu()->id]);
}

const struct topology *cpu_topology(u32 cpu)
{
    assert(cpu < cpu_count);
    return topologies[cpu];
}
