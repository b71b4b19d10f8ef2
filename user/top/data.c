// Reading data sets: see data.h.
#include "data.h"

#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define TRIES 4 // attempts to read tasks and their counters consistently

// Reads the list of tasks and the counters that belong to it. Retries, at most
// TRIES times, if a task was created between the reads.
static const char *read_tasks(struct dataset *d)
{
    struct sysinfo_totals before;

    for (int i = 0; i < TRIES; i++) {
        free(d->tasks);
        d->tasks = NULL;
        if (sysinfo_get_totals("system.totals", &before) < 0)
            return "system.totals";
        d->tasks = sysinfo_read_task("system.tasks", &d->task_count);
        if (!d->tasks)
            return "system.tasks";
        if (sysinfo_get_totals("system.totals", &d->totals) < 0)
            return "system.totals";
        if (before.tasks_created == d->totals.tasks_created)
            break;
    }
    return NULL;
}

static const char *read_machine(struct dataset *d)
{
    if (sysinfo_get_uptime("system.uptime", &d->uptime) < 0)
        return "system.uptime";
    if (sysinfo_get_load("system.load", &d->load) < 0)
        return "system.load";
    if (sysinfo_get_physmem("system.physmem", &d->memory) < 0)
        return "system.physmem";
    d->cpus = sysinfo_read_cpu("system.cpus", &d->cpu_count);
    return d->cpus != NULL ? NULL : "system.cpus";
}

// Whether the node does not exist, which is no error: a kernel need not count
// system calls, and a task that has ended makes no more of them.
static bool node_is_missing(void)
{
    return errno == ENOENT;
}

static const char *read_lists(struct dataset *d, uint32_t task)
{
    char path[SYSINFO_PATH_MAX] = "system.syscalls";

    d->threads = sysinfo_read_thread("system.threads", &d->thread_count);
    if (!d->threads)
        return "system.threads";
    d->exceptions =
        sysinfo_read_exception("system.exceptions", &d->exception_count);
    if (!d->exceptions && !node_is_missing())
        return "system.exceptions";
    if (task != SYSINFO_ALL)
        snprintf(path, sizeof(path), "system.tasks.%" PRIu32 ".syscalls", task);
    d->syscalls = sysinfo_read_syscall(path, &d->syscall_count);
    if (!d->syscalls && !node_is_missing())
        return "system.syscalls";
    return NULL;
}

const char *dataset_read(struct dataset *d, uint32_t task)
{
    *d = (struct dataset){ 0 };
    // CPUs and tasks are read in immediate succession, because their cycles
    // are compared.
    const char *failed = read_machine(d);
    if (!failed)
        failed = read_tasks(d);
    if (!failed)
        failed = read_lists(d, task);
    if (!failed) {
        dataset_sort(d);
        return NULL;
    }
    int error = errno;
    dataset_free(d);
    errno = error;
    return failed;
}

void dataset_free(struct dataset *d)
{
    free(d->cpus);
    free(d->tasks);
    free(d->threads);
    free(d->exceptions);
    free(d->syscalls);
    *d = (struct dataset){ 0 };
}
