#define _GNU_SOURCE // asprintf
#include "recording.h"

#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define INFO_MS 1000 // interval at which totals are written to the file

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int64_t now_ms(void)
{
    return now_ns(CLOCK_MONOTONIC) / 1000000;
}

static struct perf_date date_of_samples(void)
{
    return (struct perf_date){ PERF_DATE_VERSION, CLOCK_MONOTONIC,
                               now_ns(CLOCK_REALTIME),
                               now_ns(CLOCK_MONOTONIC) };
}

// Stores the CPU's name, as /proc/cpuinfo has it, or "".
static void read_cpu_name(char *name, size_t size)
{
    char line[128];
    FILE *f = fopen("/proc/cpuinfo", "r");

    name[0] = '\0';
    while (f && name[0] == '\0' && fgets(line, sizeof(line), f)) {
        char *value = strstr(line, ": ");
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "model name", strlen("model name")) == 0 && value)
            snprintf(name, size, "%s", value + 2);
    }
    if (f)
        fclose(f);
}

void recording_begin(struct recording *r, char *const *command,
                     struct events *events)
{
    struct perf_event list[EVENTS_MAX];
    struct utsname name;
    char cpu[64];
    if (!r->path)
        return;
    r->events = events;
    for (uint32_t i = 0; i < events->count; i++) {
        struct event *e = &events->list[i];
        list[i] = (struct perf_event){ &e->asked, &e->info, &e->samples };
    }
    if (uname(&name) < 0)
        fail(1, "%s: %s", r->path, strerror(errno));
    read_cpu_name(cpu, sizeof(cpu));
    // Those of the machine, not only those that this process may use.
    size_t cpus = 0;
    struct sysinfo_cpu *topology = sysinfo_read_cpu("system.cpus", &cpus);
    struct perf_environment environment = {
        .cpu = cpu,
        .host = name.nodename,
        .release = name.release,
        .version = name.version,
        .machine = name.machine,
        .cpus = (uint32_t)cpus,
        .topology = topology,
        .command = command,
        .date = date_of_samples(),
    };
    environment.kernel_id_size = kernel_build_id(environment.kernel_id);
    const char *problem = perf_write_begin(&r->writer, r->path, &environment,
                                           list, events->count);
    free(topology);
    if (problem)
        fail(1, "-o %s: %s", r->path, problem);
    r->next_info_ms = now_ms() + INFO_MS;
}

static void write_infos(struct recording *r)
{
    for (uint32_t i = 0; i < r->events->count; i++) {
        struct sprofile_info info;
        if (profile_info(&r->events->list[i].session, &info) == 0)
            perf_write_info(&r->writer, i, &info);
    }
}

void recording_flush(struct recording *r)
{
    if (!r->path)
        return;
    perf_write_flush(&r->writer);
    if (now_ms() < r->next_info_ms)
        return;
    write_infos(r);
    r->next_info_ms = now_ms() + INFO_MS;
}

bool recording_end(struct recording *r)
{
    if (!r->path)
        return true;
    for (uint32_t i = 0; i < r->events->count; i++)
        perf_write_totals(&r->writer, i, &r->events->list[i].info);
    const char *problem = perf_write_end(&r->writer);
    if (problem)
        complain("-o %s: %s", r->path, problem);
    return !problem;
}
