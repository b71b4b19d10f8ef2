// system.kernel: the kernel time of threads, by subsystem.

#include "arch/irq.h"
#include "arch/trap.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/monitor/audit.h"
#include "kernel/monitor/sysinfo.h"
#include "kernel/sched/statistics.h"
#include "kernel/task/syscall_table.h"
#include "lib/string.h"

#define EXCEPTIONS 32u

static u64 exceptions(u32 vector)
{
    u64 n = 0;
    for (u32 i = 0; i < cpu_count; i++)
        n += irq_count(i, vector);
    return n;
}

// How often each subsystem was entered: by calls, exceptions and switches.
static void count_entries(u64 entries[SUBSYSTEM_COUNT])
{
    struct syscall_counts c;
    for (u32 n = syscall_next(0);; n = syscall_next(n + 1)) {
        syscall_counts(n, &c);
        entries[syscall_subsystem(n)] += c.count;
        if (n == SYSCALL_UNKNOWN)
            break;
    }
    for (u32 v = 0; v < EXCEPTIONS; v++) {
        if (v != VECTOR_NMI)
            entries[exception_subsystem(v)] += exceptions(v);
    }
    entries[IN_SCHEDULING] += sched_switches();
}

static void put(struct chain *out, const struct audit *a, enum subsystem which,
                const char *name, u64 entries)
{
    assert(which < SUBSYSTEM_COUNT);
    struct sysinfo_kernel *record = chain_add(out);

    if (!record)
        return;
    strlcpy(record->name, name, sizeof(record->name));
    record->calls = entries;
    for (u32 i = 0; i < a->cpus; i++)
        record->cycles += a->cpu[i].in[which];
}

static int make_kernel(struct chain *out, u32 number UNUSED)
{
    u64 entries[SUBSYSTEM_COUNT] = { 0 };
    struct audit *a = audit_alloc();
    if (!a)
        return -ENOMEM;
    count_entries(entries);
    audit_take(a); // all as of one instant
#define PUT(upper, name) put(out, a, IN_##upper, name, entries[IN_##upper]);
    SUBSYSTEMS(PUT)
#undef PUT
    kfree(a);
    return 0;
}

SYSINFO_NODE(kernel, .path = "system.kernel",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_KERNEL),
             .make = make_kernel);
