// The files of /proc that are about the machine, and its root directory.
//
// Each maker asks the part of the kernel that keeps the figure; nothing is kept
// here. Formats are Linux's (proc(5)), as free, top, uptime, df and mount parse
// them.

#include "kernel/fs/mount.h"
#include "kernel/fs/procfs.h"
#include "kernel/init/log.h"
#include "kernel/mm/frame.h"
#include "kernel/sched/runqueue.h"
#include "kernel/sched/task.h"
#include "kernel/syscall/machine.h"
#include "kernel/time/wallclock.h"
#include "lib/format.h"
#include "lib/string.h"

#include <arch/boot.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/irq.h>

#define PAGE_KIB (PAGE_SIZE / 1024)
#define VECTORS 256u
#define FIRST_DEVICE 32u // vectors below are exceptions

// --- stat
// -----------------------------------------------------------------------

struct cpu_times {
    u64 user, kernel, irq, idle; // clock ticks
};

static u64 ticks(u64 cycles)
{
    return clock_tsc_to_ns(cycles) / PROC_TICK_NS;
}

static struct cpu_times cpu_times(u32 cpu)
{
    struct cpu_times t;

    sched_cpu_times(cpu, &t.user, &t.kernel, &t.irq, &t.idle);
    return (struct cpu_times){ ticks(t.user), ticks(t.kernel), ticks(t.irq),
                               ticks(t.idle) };
}

// name user nice system idle iowait irq softirq steal guest guest_nice
static void put_cpu_line(struct text *t, const char *name,
                         const struct cpu_times *c)
{
    text_printf(t, "%s %llu 0 %llu %llu 0 %llu 0 0 0 0\n", name, c->user,
                c->kernel, c->idle, c->irq);
}

static void put_cpu_times(struct text *t)
{
    struct cpu_times each[CPU_MAX], sum = { 0, 0, 0, 0 };

    for (u32 i = 0; i < cpu_count; i++) {
        each[i] = cpu_times(i);
        sum.user += each[i].user;
        sum.kernel += each[i].kernel;
        sum.irq += each[i].irq;
        sum.idle += each[i].idle;
    }
    put_cpu_line(t, "cpu ", &sum);
    for (u32 i = 0; i < cpu_count; i++) {
        char name[8];

        format(name, sizeof(name), "cpu%u", i);
        put_cpu_line(t, name, &each[i]);
    }
}

static u64 vector_count(u32 vector)
{
    u64 sum = 0;

    for (u32 i = 0; i < cpu_count; i++)
        sum += irq_count(i, vector);
    return sum;
}

static void put_interrupt_line(struct text *t)
{
    u64 counts[VECTORS - FIRST_DEVICE], sum = 0;

    for (u32 i = 0; i < ARRAY_SIZE(counts); i++) {
        counts[i] = vector_count(FIRST_DEVICE + i);
        sum += counts[i];
    }
    text_printf(t, "intr %llu", sum);
    for (u32 i = 0; i < ARRAY_SIZE(counts); i++) {
        if (counts[i] == 0)
            text_append(t, " 0", 2);
        else
            text_printf(t, " %llu", counts[i]);
    }
    text_append(t, "\n", 1);
}

static u64 context_switches(void)
{
    u64 sum = 0;

    for (u32 i = 0; i < cpu_count; i++) {
        u32 flags = spin_lock_irq(&run_queues[i].lock);

        sum += run_queues[i].switches;
        spin_unlock_irq(&run_queues[i].lock, flags);
    }
    return sum;
}

static void find_newest(struct task *task, void *arg)
{
    u32 *newest = arg;

    *newest = MAX(*newest, task->id);
}

static u32 newest_task(void)
{
    u32 newest = 0;
    u32 flags = spin_lock_irq(&tasks_lock);

    task_for_each_locked(find_newest, &newest);
    spin_unlock_irq(&tasks_lock, flags);
    return newest;
}

static int make_stat(struct text *t, void *arg UNUSED)
{
    put_cpu_times(t);
    put_interrupt_line(t);
    text_printf(t, "ctxt %llu\nbtime %lld\nprocesses %u\n", context_switches(),
                wallclock_boot_ns() / (s64)NSEC_PER_SEC, newest_task());
    text_printf(t, "procs_running %u\nprocs_blocked 0\n", sched_runnable());
    return 0;
}

// --- loadavg, uptime
// ------------------------------------------------------------

static int make_loadavg(struct text *t, void *arg UNUSED)
{
    u32 load[3];

    sched_load(load);
    for (u32 i = 0; i < ARRAY_SIZE(load); i++) {
        u32 hundredths = ((u64)load[i] * 100 + 0x8000) >> 16;

        text_printf(t, "%u.%02u ", hundredths / 100, hundredths % 100);
    }
    text_printf(t, "%u/%u %u\n", sched_runnable(), thread_count(),
                newest_task());
    return 0;
}

static void put_seconds(struct text *t, u64 tick_count, const char *end)
{
    text_printf(t, "%llu.%02u%s", tick_count / 100, (u32)(tick_count % 100),
                end);
}

static int make_uptime(struct text *t, void *arg UNUSED)
{
    u64 idle = 0;

    for (u32 i = 0; i < cpu_count; i++)
        idle += cpu_times(i).idle;
    put_seconds(t, clock_now_ns() / PROC_TICK_NS, " ");
    put_seconds(t, idle, "\n");
    return 0;
}

// --- meminfo
// --------------------------------------------------------------------

static int make_meminfo(struct text *t, void *arg UNUSED)
{
    struct frame_stats f;

    frame_stats(&f);
    const struct {
        const char *name;
        u64 frames;
    } lines[] = {
        { "MemTotal:", f.total },
        { "MemFree:", f.free },
        { "MemAvailable:", f.free },
        { "Buffers:", 0 },
        { "Cached:", f.by_use[FRAME_FILE] },
        { "SwapCached:", 0 },
        { "Active:", f.by_use[FRAME_USER] },
        { "Inactive:", 0 },
        { "HighTotal:", f.zone_total[1] },
        { "HighFree:", f.zone_free[1] },
        { "LowTotal:", f.zone_total[0] },
        { "LowFree:", f.zone_free[0] },
        { "SwapTotal:", 0 },
        { "SwapFree:", 0 },
        { "Dirty:", 0 },
        { "Writeback:", 0 },
        { "AnonPages:", f.by_use[FRAME_USER] },
        { "Mapped:", 0 },
        { "Shmem:", f.by_use[FRAME_FILE] },
        { "Slab:", f.by_use[FRAME_SLAB] },
        { "SReclaimable:", 0 },
        { "SUnreclaim:", f.by_use[FRAME_SLAB] },
        { "KernelStack:", f.by_use[FRAME_KSTACK] },
        { "PageTables:", f.by_use[FRAME_PAGETABLE] },
    };

    for (u32 i = 0; i < ARRAY_SIZE(lines); i++)
        text_printf(t, "%-15s %8llu kB\n", lines[i].name,
                    lines[i].frames * PAGE_KIB);
    return 0;
}

// --- cpuinfo, interrupts
// ----------------------------------------------------------

static void put_flags(struct text *t)
{
    const struct {
        const char *name;
        bool present;
    } flags[] = {
        { "pae", cpu_features.pae },
        { "nx", cpu_features.nx },
        { "pge", cpu_features.pge },
        { "pse", cpu_features.pse },
        { "smep", cpu_features.smep },
        { "smap", cpu_features.smap },
        { "fxsr", cpu_features.fxsr },
        { "sse", cpu_features.sse },
        { "apic", cpu_features.apic },
        { "x2apic", cpu_features.x2apic },
        { "tsc_deadline_timer", cpu_features.tsc_deadline },
        { "constant_tsc", cpu_features.invariant_tsc },
        { "hypervisor", cpu_features.hypervisor },
    };

    text_printf(t, "flags\t\t: tsc");
    for (u32 i = 0; i < ARRAY_SIZE(flags); i++) {
        if (flags[i].present)
            text_printf(t, " %s", flags[i].name);
    }
    text_append(t, "\n", 1);
}

static int make_cpuinfo(struct text *t, void *arg UNUSED)
{
    const struct cpu_features *f = &cpu_features;
    u32 khz = clock_tsc_hz() / 1000;

    for (u32 i = 0; i < cpu_count; i++) {
        text_printf(t, "processor\t: %u\nvendor_id\t: %s\n", i, f->vendor);
        text_printf(t, "cpu family\t: %u\nmodel\t\t: %u\n", f->family,
                    f->model);
        text_printf(t, "model name\t: %s\nstepping\t: %u\n", f->brand,
                    f->stepping);
        text_printf(t, "cpu MHz\t\t: %u.%03u\n", khz / 1000, khz % 1000);
        text_printf(t, "apicid\t\t: %u\nfpu\t\t: yes\n", cpus[i].apic_id);
        put_flags(t);
        text_printf(t, "bogomips\t: %u.%02u\n\n", khz / 500, khz / 5 % 100);
    }
    return 0;
}

// Vectors that are in use or were once taken; those of system calls are counted
// elsewhere.
static int make_interrupts(struct text *t, void *arg UNUSED)
{
    text_printf(t, "    ");
    for (u32 i = 0; i < cpu_count; i++)
        text_printf(t, "       CPU%-2u", i);
    text_append(t, "\n", 1);
    for (u32 v = 0; v < VECTORS; v++) {
        if (irq_name(v)[0] == '\0' && vector_count(v) == 0)
            continue;
        text_printf(t, "%3u:", v);
        for (u32 i = 0; i < cpu_count; i++)
            text_printf(t, " %11llu", irq_count(i, v));
        text_printf(t, "  %-9s  %s\n", irq_controller(v), irq_name(v));
    }
    return 0;
}

// --- the rest
// -------------------------------------------------------------------

static int put_mount(const struct mount *m, void *arg)
{
    text_printf(arg, "%s %s %s rw 0 0\n", m->type, m->path, m->type);
    return 0;
}

int proc_make_mounts(struct text *t, void *arg UNUSED)
{
    return mount_for_each(put_mount, t);
}

static int make_version(struct text *t, void *arg UNUSED)
{
    text_printf(t, "%s version %s %s\n", KERNEL_NAME, KERNEL_RELEASE,
                KERNEL_VERSION);
    return 0;
}

static int make_cmdline(struct text *t, void *arg UNUSED)
{
    text_printf(t, "%s\n", boot_info.cmdline);
    return 0;
}

static int make_filesystems(struct text *t, void *arg UNUSED)
{
    text_printf(t, "nodev\ttmpfs\nnodev\tdevtmpfs\nnodev\tproc\n");
    return 0;
}

static int link_self(struct vnode *v UNUSED, char *buf, size_t size)
{
    return format(buf, size, "%u", current_task()->id);
}

static int link_thread_self(struct vnode *v UNUSED, char *buf, size_t size)
{
    return format(buf, size, "%u/task/%u", current_task()->id, current->tid);
}

// --- the root
// -------------------------------------------------------------------

#define FILE(file, maker)                                   \
    {                                                       \
        .name = file, .mode = S_IFREG | 0444, .make = maker \
    }
#define LINK(file, target)                                   \
    {                                                        \
        .name = file, .mode = S_IFLNK | 0777, .link = target \
    }

static const struct proc_entry entries[] = {
    FILE("cmdline", make_cmdline),
    FILE("cpuinfo", make_cpuinfo),
    FILE("filesystems", make_filesystems),
    FILE("interrupts", make_interrupts),
    FILE("loadavg", make_loadavg),
    FILE("meminfo", make_meminfo),
    FILE("mounts", proc_make_mounts),
    FILE("stat", make_stat),
    FILE("uptime", make_uptime),
    FILE("version", make_version),
    LINK("self", link_self),
    LINK("thread-self", link_thread_self),
};

static const struct proc_dir root_dir = {
    .entries = entries,
    .count = ARRAY_SIZE(entries),
    .numbered = &proc_task_entry,
    .next = proc_task_next,
    .set = proc_set_pid,
};

const struct proc_entry proc_root_entry = {
    .name = "proc",
    .mode = S_IFDIR | 0555,
    .dir = &root_dir,
};
