// Reads the topology of the calling CPU from CPUID.
#pragma once

#include "arch/topology.h"

// Reads a CPUID leaf: EAX, EBX, ECX, EDX.
typedef void (*cpuid_reader)(u32 leaf, u32 subleaf, u32 registers[4]);

// topology_decode.c. Any context. `apic_id` is that of the local APIC.
void topology_read(cpuid_reader read, u32 apic_id, struct topology *out);
// topology.c: once on each CPU, at its start.
void topology_init_cpu(void);
