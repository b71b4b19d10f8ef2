// The files of /proc that describe the machine, and its root directory.
//
// The values are those of the sysinfo tree (kernel/monitor/sysinfo_values.h) in
// Linux's formats (proc(5)), as free, top, uptime, df and mount parse them; no
// state is kept here.

#include "arch/boot.h"
#include "arch/clock.h"
#include "arch/cpu.h"
#include "arch/irq.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/version.h"
#include "kernel/exec/layout.h"
#include "kernel/fs/mount.h"
#include "kernel/fs/path.h"
#include "kernel/mm/heap.h"
#include "kernel/monitor/sysinfo_values.h"
#include "kernel/procfs/procfs.h"
#include "kernel/sched/load.h"
#include "kernel/task/task.h"
#include "kernel/time/wallclock.h"
#include "lib/format.h"
#include "lib/string.h"

#define FIRST_DEVICE 32u // vectors below are exceptions

// --- stat -------------------------------------------------------------------

struct cpu_times {
    u64 user, kernel, irq, idle; // clock ticks
};

static struct cpu_times cpu_times(u32 cpu)
{
    struct sysinfo_cpu c;
    sysinfo_fill_cpu(cpu, &c);
    return (struct cpu_times){ proc_ticks(c.user),
                               proc_ticks(c.kernel + c.start_up),
                               proc_ticks(c.irq), proc_ticks(c.idle) };
}

// name user nice system idle iowait irq softirq steal guest guest_nice
static void put_cpu_line(struct chain *t, const char *name,
                         const struct cpu_times *c)
{
    chain_printf(t, "%s %llu 0 %llu %llu 0 %llu 0 0 0 0\n", name, c->user,
                 c->kernel, c->idle, c->irq);
}

static int put_cpu_times(struct chain *t)
{
    struct cpu_times *each = kmalloc(cpu_count * sizeof(*each));
    struct cpu_times sum = { 0, 0, 0, 0 };
    if (each == NULL)
        return -ENOMEM;
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
    kfree(each);
    return 0;
}

static u64 vector_count(u32 vector)
{
    struct sysinfo_exception e;
    sysinfo_fill_exception(vector, SYSINFO_ALL, &e);
    return e.count;
}

static void put_interrupt_line(struct chain *t)
{
    u64 counts[VECTORS - FIRST_DEVICE], sum = 0;
    for (u32 i = 0; i < ARRAY_SIZE(counts); i++) {
        counts[i] = vector_count(FIRST_DEVICE + i);
        sum += counts[i];
    }
    chain_printf(t, "intr %llu", sum);
    for (u32 i = 0; i < ARRAY_SIZE(counts); i++) {
        if (counts[i] == 0)
            chain_append(t, " 0", 2);
        else
            chain_printf(t, " %llu", counts[i]);
    }
    chain_append(t, "\n", 1);
}

static int make_stat(struct chain *t, void *arg UNUSED)
{
    struct sysinfo_totals totals;
    sysinfo_fill_totals(&totals);
    int err = put_cpu_times(t);
    if (err)
        return err;
    put_interrupt_line(t);
    chain_printf(t, "ctxt %llu\nbtime %lld\nprocesses %llu\n", totals.switches,
                 wallclock_boot_ns() / (s64)NSEC_PER_SEC, totals.tasks_created);
    chain_printf(t, "procs_running %u\nprocs_blocked 0\n", totals.runnable);
    return 0;
}

// --- loadavg, uptime --------------------------------------------------------

static void put_load(struct chain *t, u32 load)
{
    u32 hundredths = load_hundredths(load);
    chain_printf(t, "%u.%02u ", hundredths / 100, hundredths % 100);
}

static int make_loadavg(struct chain *t, void *arg UNUSED)
{
    struct sysinfo_totals totals;
    struct sysinfo_load load;
    sysinfo_fill_load(&load);
    sysinfo_fill_totals(&totals);
    put_load(t, load.one);
    put_load(t, load.five);
    put_load(t, load.fifteen);
    chain_printf(t, "%u/%u %u\n", totals.runnable, totals.threads,
                 totals.newest);
    return 0;
}

static void put_seconds(struct chain *t, u64 tick_count, const char *end)
{
    chain_printf(t, "%llu.%02u%s", tick_count / 100, (u32)(tick_count % 100),
                 end);
}

static int make_uptime(struct chain *t, void *arg UNUSED)
{
    struct sysinfo_uptime up;
    u64 idle = 0;
    sysinfo_fill_uptime(&up);
    for (u32 i = 0; i < cpu_count; i++)
        idle += cpu_times(i).idle;
    put_seconds(t, up.seconds * 100 + up.nanoseconds / PROC_TICK_NS, " ");
    put_seconds(t, idle, "\n");
    return 0;
}

// --- meminfo ----------------------------------------------------------------

static int make_meminfo(struct chain *t, void *arg UNUSED)
{
    struct sysinfo_physmem m;
    sysinfo_fill_physmem(&m);
    const struct {
        const char *name;
        u64 bytes;
    } lines[] = {
        { "MemTotal:", m.total },
        { "MemFree:", m.free },
        { "MemAvailable:", m.free },
        { "Buffers:", 0 },
        { "Cached:", m.file },
        { "SwapCached:", 0 },
        { "Active:", m.user },
        { "Inactive:", 0 },
        { "HighTotal:", m.high_total },
        { "HighFree:", m.high_free },
        { "LowTotal:", m.low_total },
        { "LowFree:", m.low_free },
        { "SwapTotal:", 0 },
        { "SwapFree:", 0 },
        { "Dirty:", 0 },
        { "Writeback:", 0 },
        { "AnonPages:", m.user },
        { "Mapped:", 0 },
        { "Shmem:", m.file },
        { "Slab:", m.slab },
        { "SReclaimable:", 0 },
        { "SUnreclaim:", m.slab },
        { "KernelStack:", m.kstack },
        { "PageTables:", m.pagetable },
    };

    for (u32 i = 0; i < ARRAY_SIZE(lines); i++)
        chain_printf(t, "%-15s %8llu kB\n", lines[i].name,
                     lines[i].bytes / 1024);
    return 0;
}

// --- cpuinfo, interrupts ----------------------------------------------------

static void put_flags(struct chain *t)
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
        { "umip", cpu_features.umip },
        { "fxsr", cpu_features.fxsr },
        { "sse", cpu_features.sse },
        { "apic", cpu_features.apic },
        { "x2apic", cpu_features.x2apic },
        { "tsc_deadline_timer", cpu_features.tsc_deadline },
        { "constant_tsc", cpu_features.invariant_tsc },
        { "hypervisor", cpu_features.hypervisor },
    };

    chain_printf(t, "flags\t\t: tsc");
    for (u32 i = 0; i < ARRAY_SIZE(flags); i++) {
        if (flags[i].present)
            chain_printf(t, " %s", flags[i].name);
    }
    chain_append(t, "\n", 1);
}

static int make_cpuinfo(struct chain *t, void *arg UNUSED)
{
    const struct cpu_features *f = &cpu_features;
    u32 khz = clock_tsc_hz() / 1000;
    for (u32 i = 0; i < cpu_count; i++) {
        chain_printf(t, "processor\t: %u\nvendor_id\t: %s\n", i, f->vendor);
        chain_printf(t, "cpu family\t: %u\nmodel\t\t: %u\n", f->family,
                     f->model);
        chain_printf(t, "model name\t: %s\nstepping\t: %u\n", f->brand,
                     f->stepping);
        chain_printf(t, "cpu MHz\t\t: %u.%03u\n", khz / 1000, khz % 1000);
        chain_printf(t, "apicid\t\t: %u\nfpu\t\t: yes\n", cpus[i]->apic_id);
        put_flags(t);
        chain_printf(t, "bogomips\t: %u.%02u\n\n", khz / 500, khz / 5 % 100);
    }
    return 0;
}

// Vectors that are in use or were taken at least once; system calls are counted
// elsewhere.
static int make_interrupts(struct chain *t, void *arg UNUSED)
{
    chain_printf(t, "    ");
    for (u32 i = 0; i < cpu_count; i++)
        chain_printf(t, "       CPU%-2u", i);
    chain_append(t, "\n", 1);
    for (u32 v = 0; v < VECTORS; v++) {
        struct sysinfo_exception e;
        sysinfo_fill_exception(v, SYSINFO_ALL, &e);
        // Exceptions only if they were counted: Linux shows none.
        if (e.count == 0 && (v < FIRST_DEVICE || !e.hot))
            continue;
        chain_printf(t, "%3u:", v);
        for (u32 i = 0; i < cpu_count; i++) {
            sysinfo_fill_exception(v, i, &e);
            chain_printf(t, " %11llu", e.count);
        }
        chain_printf(t, "  %-9s  %s\n", e.controller, e.description);
    }
    return 0;
}

// --- the rest ---------------------------------------------------------------

// A field of a line: separators and the escape character itself become \ooo.
static void put_field(struct chain *t, const char *s)
{
    for (; *s; s++) {
        bool plain = !strchr(" \t\n\\", *s);
        chain_printf(t, plain ? "%c" : "\\%03o", (u8)*s);
    }
}

struct mounts_text {
    struct chain *t;
    char *path; // PATH_MAX_LEN + 1 bytes
};

// The path is the reader's: the mounting task may have another root.
static int put_mount(const struct mount *m, void *arg)
{
    struct mounts_text *to = arg;
    bool known = vfs_path(m->root, to->path, PATH_MAX_LEN + 1) >= 0;
    chain_printf(to->t, "%s ", m->type);
    put_field(to->t, known ? to->path : m->path);
    chain_printf(to->t, " %s %s%s 0 0\n", m->type, m->read_only ? "ro" : "rw",
                 READ_ONCE(m->nosuid) ? ",nosuid" : "");
    return 0;
}

int proc_make_mounts(struct chain *t, void *arg UNUSED)
{
    struct mounts_text to = { t, kmalloc(PATH_MAX_LEN + 1) };
    if (!to.path)
        return -ENOMEM;
    int err = mount_for_each(put_mount, &to);
    kfree(to.path);
    return err;
}

static int make_version(struct chain *t, void *arg UNUSED)
{
    chain_printf(t, "%s version %s %s\n", KERNEL_NAME, kernel_release,
                 kernel_version);
    return 0;
}

static int make_cmdline(struct chain *t, void *arg UNUSED)
{
    chain_printf(t, "%s\n", boot_info.cmdline);
    return 0;
}

static int make_filesystems(struct chain *t, void *arg UNUSED)
{
    chain_printf(t, "nodev\ttmpfs\nnodev\tdevtmpfs\nnodev\tproc\n");
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

// --- the root ---------------------------------------------------------------

static int make_randomize(struct chain *t, void *arg UNUSED)
{
    chain_printf(t, "%u\n", layout_level());
    return 0;
}

static const struct proc_entry sys_kernel_entries[] = {
    PROC_FILE("randomize_va_space", .make = make_randomize),
};
static const struct proc_dir sys_kernel_dir = {
    .entries = sys_kernel_entries,
    .count = ARRAY_SIZE(sys_kernel_entries),
};
static const struct proc_entry sys_entries[] = {
    PROC_DIRECTORY("kernel", 0555, &sys_kernel_dir),
};
static const struct proc_dir sys_dir = {
    .entries = sys_entries,
    .count = ARRAY_SIZE(sys_entries),
};

static const struct proc_entry entries[] = {
    PROC_FILE("cmdline", .make = make_cmdline),
    PROC_FILE("cpuinfo", .make = make_cpuinfo),
    PROC_FILE("filesystems", .make = make_filesystems),
    PROC_FILE("interrupts", .make = make_interrupts),
    PROC_FILE("loadavg", .make = make_loadavg),
    PROC_FILE("meminfo", .make = make_meminfo),
    PROC_FILE("mounts", .make = proc_make_mounts),
    PROC_FILE("stat", .make = make_stat),
    PROC_DIRECTORY("sys", 0555, &sys_dir),
    PROC_FILE("uptime", .make = make_uptime),
    PROC_FILE("version", .make = make_version),
    PROC_LINK("self", .link = link_self),
    PROC_LINK("thread-self", .link = link_thread_self),
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
