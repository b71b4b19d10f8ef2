// What other parts of the kernel tell the sysinfo tree, when they are there.
//
// All are weak: a node whose provider is not linked in is absent from the tree,
// and the tools say so. Each is called in thread context, without locks, with
// interrupts on; none may keep interrupts off for longer than a few hundred
// instructions. A provider is defined with exactly this declaration, in the
// file that owns the figures, which includes this header.
#pragma once

#include <strobe/sysinfo.h>

#include "lib/types.h"

struct task;
struct thread;

#define PROVIDER __attribute__((weak))

// system.locks: calls `fn` for each lock class, with its record filled. `fn`
// allocates memory: no spinlock may be held.
void lock_classes_each(void (*fn)(const struct sysinfo_lock *, void *),
                       void *arg);

// system.profile.sessions: calls `fn` for each session there is. No spinlock is
// held; a session that ends meanwhile waits for `fn`.
void sessions_each(void (*fn)(const struct sysinfo_session *, void *),
                   void *arg);
// system.profile.totals. Figures that are sums have never gone down.
void session_totals(struct sysinfo_sampling *out);

// system.ipccs: calls `fn` for each phone that is connected. As
// lock_classes_each.
PROVIDER void ipc_connections_each(void (*fn)(const struct sysinfo_ipcc *,
                                              void *),
                                   void *arg);
// The `ipc` counters of a task (its `ipc_counts`).
struct ipc_counts;
PROVIDER void ipc_task_counts(const struct task *task, struct ipc_counts *out);

// system.clock: calls `fn` for each time source and timer found. Without it the
// node shows the TSC.
PROVIDER void
clock_devices_each(void (*fn)(const struct sysinfo_clock *, void *), void *arg);

// system.threads: nanoseconds a thread has waited in run queues. Without it 0.
PROVIDER u64 thread_ready_ns(struct thread *t);
