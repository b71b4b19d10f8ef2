// Nodes whose statistics are kept by other parts of the kernel (providers.h).

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/providers.h"
#include "kernel/monitor/sysinfo.h"
#include "kernel/task/permission.h"
#include "kernel/task/syscall_table.h"
#include "kernel/task/task.h"
#include "lib/string.h"

// ---- system calls

static void put_syscall(struct chain *out, struct task *task, u32 number,
                        const char *name)
{
    struct syscall_counts f;
    struct sysinfo_syscall *record;
    if (task)
        syscall_task_counts(task, number, &f);
    else
        syscall_counts(number, &f);
    record = f.count ? chain_add(out) : NULL;
    if (!record)
        return;
    record->number = number;
    record->count = f.count;
    record->errors = f.errors;
    record->cycles = f.cycles;
    strlcpy(record->name, name, sizeof(record->name));
}

// System calls with at least one call.
static void put_syscalls(struct chain *out, struct task *task)
{
    for (u32 i = syscall_next(0); i != SYSCALL_UNKNOWN; i = syscall_next(i + 1))
        put_syscall(out, task, i, syscall_name(i));
    put_syscall(out, task, SYSCALL_UNKNOWN, "(unknown)");
}

static int make_syscalls(struct chain *out, u32 number UNUSED)
{
    put_syscalls(out, NULL);
    return 0;
}

static int make_task_syscalls(struct chain *out, u32 id)
{
    struct task *t = id ? task_find(id) : &kernel_task;
    if (!t)
        return -ENOENT;
    int err = may_profile(t) ? 0 : -EPERM;
    if (!err)
        put_syscalls(out, t);
    if (id)
        task_unref(t);
    return err;
}

// ---- locks

static void put_lock(const struct sysinfo_lock *lock, void *arg)
{
    struct sysinfo_lock *record = chain_add(arg);
    if (record)
        *record = *lock;
}

static int make_locks(struct chain *out, u32 number UNUSED)
{
    lock_classes_each(put_lock, out);
    return 0;
}

// ---- connections

static void put_ipcc(const struct sysinfo_ipcc *connection, void *arg)
{
    struct sysinfo_ipcc *record = chain_add(arg);
    if (record)
        *record = *connection;
}

static int make_ipccs(struct chain *out, u32 number UNUSED)
{
    ipc_connections_each(put_ipcc, out);
    return 0;
}

// ---- the kernel's code

static int make_text(struct chain *out, u32 number UNUSED)
{
    struct sysinfo_text *record = chain_add(out);
    if (record)
        text_report(record);
    return 0;
}

#define DATA(record) SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_##record)

SYSINFO_NODE(syscalls, .path = "system.syscalls", .type = DATA(SYSCALL),
             .make = make_syscalls);
SYSINFO_NODE(task_syscalls, .path = "system.tasks.#.syscalls",
             .type = DATA(SYSCALL), .make = make_task_syscalls);
SYSINFO_NODE(locks, .path = "system.locks", .type = DATA(LOCK),
             .make = make_locks);
SYSINFO_NODE(text, .path = "system.text", .type = DATA(TEXT),
             .make = make_text);
SYSINFO_NODE(ipccs, .path = "system.ipccs", .type = DATA(IPCC),
             .make = make_ipccs);
