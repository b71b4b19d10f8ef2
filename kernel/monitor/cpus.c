// system.uptime, system.load, system.totals, system.cpus, system.audit.

#include "arch/clock.h"
#include "arch/topology.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/monitor/audit.h"
#include "kernel/monitor/sysinfo.h"
#include "kernel/monitor/sysinfo_values.h"
#include "kernel/sched/load.h"
#include "kernel/sched/statistics.h"
#include "kernel/task/task.h"
#include "lib/string.h"

void sysinfo_fill_uptime(struct sysinfo_uptime *out)
{
    u64 now = clock_now_ns();
    out->seconds = now / NSEC_PER_SEC;
    out->nanoseconds = (u32)(now % NSEC_PER_SEC);
}

void sysinfo_fill_load(struct sysinfo_load *out)
{
    struct load load;
    load_read(&load);
    *out =
        (struct sysinfo_load){ load.average[0], load.average[1],
                               load.average[2], load.runnable, load.updates };
}

void sysinfo_fill_totals(struct sysinfo_totals *out)
{
    assert_may_sleep();
    out->tasks = task_count();
    out->threads = thread_count();
    out->runnable = sched_runnable();
    out->newest = task_newest();
    out->tasks_created = tasks_created();
    out->switches = sched_switches();
}

static void fill_topology(u32 cpu, struct sysinfo_cpu *out)
{
    static const char *const kinds[] = {
        [CORE_PERFORMANCE] = "performance", [CORE_EFFICIENCY] = "efficiency"
    };
    const struct topology *t = cpu_topology(cpu);
    out->apic_id = cpus[cpu]->apic_id;
    out->package = t->package;
    out->core = t->core;
    out->thread = t->thread;
    out->l1d = t->l1d;
    out->l1i = t->l1i;
    out->l2 = t->l2;
    out->l3 = t->l3;
    strlcpy(out->kind, kinds[t->kind] ? kinds[t->kind] : "", sizeof(out->kind));
}

void sysinfo_fill_cpu(u32 cpu, struct sysinfo_cpu *out)
{
    assert_checked(cpu < cpu_count);
    struct ledger_sums s;

    ledger_sums(cpu, &s);
    out->id = cpu;
    out->active = cpus[cpu]->online;
    out->frequency = clock_tsc_hz();
    out->elapsed = s.elapsed;
    out->busy = s.elapsed - s.idle;
    out->idle = s.idle;
    out->user = s.user;
    out->kernel = s.kernel;
    out->irq = s.irq;
    out->start_up = s.start_up;
    out->switches = sched_cpu_switches(cpu);
    fill_topology(cpu, out);
}

static int make_uptime(struct chain *out, u32 number UNUSED)
{
    struct sysinfo_uptime *record = chain_add(out);
    if (record)
        sysinfo_fill_uptime(record);
    return 0;
}

static int make_load(struct chain *out, u32 number UNUSED)
{
    struct sysinfo_load *record = chain_add(out);
    if (record)
        sysinfo_fill_load(record);
    return 0;
}

static int make_totals(struct chain *out, u32 number UNUSED)
{
    struct sysinfo_totals *record = chain_add(out);
    if (record)
        sysinfo_fill_totals(record);
    return 0;
}

static int make_cpu(struct chain *out, u32 cpu)
{
    struct sysinfo_cpu *record = cpu < cpu_count ? chain_add(out) : NULL;
    if (cpu >= cpu_count)
        return -ENOENT;
    if (record)
        sysinfo_fill_cpu(cpu, record);
    return 0;
}

static int make_cpus(struct chain *out, u32 number UNUSED)
{
    for (u32 i = 0; i < cpu_count; i++)
        make_cpu(out, i);
    return 0;
}

static int list_cpus(struct chain *numbers)
{
    for (u32 i = 0; i < cpu_count; i++) {
        u32 *number = chain_add(numbers);
        if (number)
            *number = i;
    }
    return 0;
}

// ---- audit

static void put_audit(struct chain *out, u32 cpu, const char *account,
                      u64 elapsed, u64 sum)
{
    assert(cpu < cpu_count || cpu == SYSINFO_ALL);
    struct sysinfo_audit *record = chain_add(out);

    if (!record)
        return;
    record->cpu = cpu;
    record->elapsed = elapsed;
    record->sum = sum;
    record->difference = (s64)(elapsed - sum);
    strlcpy(record->account, account, sizeof(record->account));
}

static int make_audit(struct chain *out, u32 number UNUSED)
{
    struct audit *a = audit_alloc();
    u64 user = 0, kernel = 0;
    if (!a)
        return -ENOMEM;
    audit_take(a);
    assert(a->cpus && a->cpus <= CPU_MAX);
    for (u32 i = 0; i < a->cpus; i++) {
        const struct ledger_sums *s = &a->cpu[i];
        u64 sum = s->user + s->kernel + s->irq + s->idle + s->start_up;
        put_audit(out, i, "all", s->elapsed, sum);
        user += s->user;
        kernel += s->kernel;
    }
    put_audit(out, SYSINFO_ALL, "user", user, a->threads_user);
    put_audit(out, SYSINFO_ALL, "kernel", kernel, a->threads_kernel);
    kfree(a);
    return 0;
}

#define DATA(record) SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_##record)

SYSINFO_NODE(uptime, .path = "system.uptime", .type = DATA(UPTIME),
             .make = make_uptime);
SYSINFO_NODE(load, .path = "system.load", .type = DATA(LOAD),
             .make = make_load);
SYSINFO_NODE(totals, .path = "system.totals", .type = DATA(TOTALS),
             .make = make_totals);
SYSINFO_NODE(cpus, .path = "system.cpus", .type = DATA(CPU), .make = make_cpus);
SYSINFO_NODE(cpu, .path = "system.cpus.#", .type = DATA(CPU), .make = make_cpu,
             .list = list_cpus);
SYSINFO_NODE(audit, .path = "system.audit", .type = DATA(AUDIT),
             .make = make_audit, .restricted = true);
