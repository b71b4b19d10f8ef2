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

void sysinfo_fill_uptime(struct sysinfo_uptime *out);
void sysinfo_fill_load(struct sysinfo_load *out);
void sysinfo_fill_totals(struct sysinfo_totals *out);
void sysinfo_fill_cpu(u32 cpu, struct sysinfo_cpu *out); // cpu < cpu_count
void sysinfo_fill_physmem(struct sysinfo_physmem *out);
void sysinfo_fill_protection(struct sysinfo_protection *out); // sleeps
// `cpu` == SYSINFO_ALL: the sum over all CPUs.
void sysinfo_fill_exception(u32 vector, u32 cpu, struct sysinfo_exception *out);

// 0; -ENOENT: there is no such task (thread); -ENOMEM.
int sysinfo_fill_task(u32 id, struct sysinfo_task *out);
int sysinfo_fill_thread(u32 id, struct sysinfo_thread *out);
