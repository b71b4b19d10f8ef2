// The machine's topology, as perf's features CPU_TOPOLOGY and HYBRID_TOPOLOGY.
#pragma once

#include <strobe/sysinfo.h>

#include "perf_features.h"

// Appends which CPUs are in which package and core.
void perf_topology_make(struct blob *out, const struct sysinfo_cpu *cpus,
                        uint32_t count);
// Appends which CPUs are of which kind; nothing unless the machine is hybrid.
void perf_hybrid_make(struct blob *out, const struct sysinfo_cpu *cpus,
                      uint32_t count);
