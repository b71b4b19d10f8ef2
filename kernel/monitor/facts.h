// Generators of the sysinfo values: the sysinfo tree holds their records, and
// /proc formats them.
//
// Thread context, interrupts on, no locks held.
#pragma once

#include <strobe/sysinfo.h>

#include "lib/types.h"

struct snapshot_task;
struct chain_cursor;
struct thread;

void fact_uptime(struct sysinfo_uptime *out);
void fact_load(struct sysinfo_load *out);
void fact_totals(struct sysinfo_totals *out);
void fact_cpu(u32 cpu, struct sysinfo_cpu *out); // cpu < cpu_count
void fact_physmem(struct sysinfo_physmem *out);
void fact_protection(struct sysinfo_protection *out); // sleeps
// `cpu` == SYSINFO_ALL: the sum over all CPUs.
void fact_exception(u32 vector, u32 cpu, struct sysinfo_exception *out);

// 0; -ENOENT: there is no such task (thread); -ENOMEM.
int fact_task(u32 id, struct sysinfo_task *out);
int fact_thread(u32 id, struct sysinfo_thread *out);
