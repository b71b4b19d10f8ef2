// What other parts of the kernel report to the sysinfo tree (kernel/monitor).
//
// Each function is called in thread context, without locks, with interrupts on;
// none may keep interrupts off for longer than a few hundred instructions. It
// is defined in the file that owns the statistics, which includes this header.
#pragma once

#include <strobe/sysinfo.h>

#include "lib/types.h"

struct chain;
struct task;
struct thread;

// system.locks: calls `fn` for each lock class, with its record filled. `fn`
// allocates memory: no spinlock may be held.
void lock_classes_each(void (*fn)(const struct sysinfo_lock *, void *),
                       void *arg);

// system.profile.sessions: calls `fn` for each existing session. No spinlock is
// held; a session that ends during the call waits until `fn` returns.
void sessions_each(void (*fn)(const struct sysinfo_session *, void *),
                   void *arg);
// system.profile.traces: the same for traces of events.
void traces_each(void (*fn)(const struct sysinfo_trace *, void *), void *arg);
// system.profile.totals. Statistics that are sums never decrease.
void session_totals(struct sysinfo_sampling *out);

// system.ipccs: calls `fn` for each connected phone. As lock_classes_each.
void ipc_connections_each(void (*fn)(const struct sysinfo_ipcc *, void *),
                          void *arg);
// The `ipc` counters of a task (its `ipc_counts`).
struct ipc_counts;
void ipc_task_counts(const struct task *task, struct ipc_counts *out);

// system.text
void text_report(struct sysinfo_text *out);

// system.clock: calls `fn` for each time source and timer found.
void clock_devices_each(void (*fn)(const struct sysinfo_clock *, void *),
                        void *arg);

// system.usb: calls `fn` for each device. As lock_classes_each.
void usb_devices_each(void (*fn)(const struct sysinfo_usb *, void *),
                      void *arg);

// system.disks: calls `fn` for each disk and partition. As lock_classes_each.
void disks_each(void (*fn)(const struct sysinfo_disk *, void *), void *arg);

// system.net. False: no card is used.
bool net_report(struct sysinfo_net *out);

// system.clock.readings: calls `fn` for each time source that counts. Keeps
// interrupts off for a few readings of one source.
void clock_readings_each(void (*fn)(const struct sysinfo_reading *, void *),
                         void *arg);

// hardware.*: appends text (kernel/mm/chain.h), lines for people. Each may take
// milliseconds.
void acpi_report(struct chain *out);
void interrupts_report(struct chain *out);
void msrs_report(struct chain *out);
void mtrrs_report(struct chain *out);
void pci_report(struct chain *out);

// system.threads: nanoseconds a thread has waited in run queues.
u64 thread_ready_ns(struct thread *t);
