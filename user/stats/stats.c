// stats [OPTION]: uptime, load; the audit, memory, kernel time, calls, locks,
// errors.
//
// Without options the output is that of the stats utility of the thesis that
// Strobe's monitoring follows (appendix A.2 and B.2).
#include "stats.h"

#include "user/libstrobe/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int (*view)(const struct settings *s);

static struct settings settings;
static struct {
    bool audit, kernel, syscalls, locks, memory, errors;
} wanted;

static const struct tool_option options[] = {
    { 0, "audit", NULL,
      "Check all CPUs' accounts against their clocks (status 1: wrong)",
      .flag = &wanted.audit },
    { 0, "kernel", NULL, "Kernel time by subsystem", .flag = &wanted.kernel },
    { 0, "syscalls", NULL, "System calls: counts, errors, time",
      .flag = &wanted.syscalls },
    { 't', "task", "task_id", "With --syscalls: of this task only",
      .task = &settings.task, .flag = &settings.one_task },
    { 0, "locks", NULL, "Locks: how often taken, waited for, held",
      .flag = &wanted.locks },
    { 0, "memory", NULL, "Memory by use", .flag = &wanted.memory },
    { 0, "errors", NULL, "Unexpected and lost interrupts, and the like",
      .flag = &wanted.errors },
    { 0, "json", NULL, "Print JSON, times in cycles", .flag = &settings.json },
    { 0 },
};
static const struct tool tool = {
    .usage = "stats [OPTION]",
    .options = options,
    .notes = "Without an option: time, uptime and load averages\n",
    .no_operands = "stats takes options only",
};

static view parse(int argc, char *argv[])
{
    view chosen = NULL;

    options_parse(&tool, argc, argv);
    const struct {
        bool wanted;
        view show;
    } views[] = {
        { wanted.audit, show_audit },       { wanted.kernel, show_kernel },
        { wanted.syscalls, show_syscalls }, { wanted.locks, show_locks },
        { wanted.memory, show_memory },     { wanted.errors, show_errors },
    };
    for (unsigned i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        if (!views[i].wanted)
            continue;
        if (chosen) {
            complain("one view at a time");
            options_wrong(&tool);
        }
        chosen = views[i].show;
    }
    if (settings.one_task && chosen != show_syscalls) {
        complain("-t goes with --syscalls");
        options_wrong(&tool);
    }
    return chosen != NULL ? chosen : show_uptime;
}

// ---- uptime

static void print_uptime(time_t now, uint64_t up, const uint32_t load[3])
{
    struct tm *tm = localtime(&now);

    printf("%02d:%02d:%02d, up %" PRIu64 " days, %" PRIu64 " hours, %" PRIu64
           " minutes, %" PRIu64 " seconds,\n      load average:",
           tm->tm_hour, tm->tm_min, tm->tm_sec, up / 86400, up / 3600 % 24,
           up / 60 % 60, up % 60);
    for (int i = 0; i < 3; i++)
        printf(" %" PRIu32 ".%02" PRIu32, load[i] / 100, load[i] % 100);
}

int show_uptime(const struct settings *s)
{
    struct sysinfo_uptime up;
    struct sysinfo_load l;
    time_t now = time(NULL);

    if (sysinfo_get_uptime("system.uptime", &up) < 0)
        sysinfo_fail("system.uptime");
    if (sysinfo_get_load("system.load", &l) < 0)
        sysinfo_fail("system.load");
    const uint32_t load[] = { sysinfo_hundredths(l.one),
                              sysinfo_hundredths(l.five),
                              sysinfo_hundredths(l.fifteen) };
    if (!s->json) {
        print_uptime(now, up.seconds, load);
        return 0;
    }
    printf("{\"time\": %lld, \"uptime\": ", (long long)now);
    sysinfo_print_json_record(stdout, SYSINFO_RECORD_UPTIME, &up);
    printf(", \"load\": ");
    sysinfo_print_json_record(stdout, SYSINFO_RECORD_LOAD, &l);
    putchar('}');
    return 0;
}

// ---- for all views

void *read_optional(const char *path, uint32_t record, size_t *count,
                    const char *what)
{
    void *records = sysinfo_read_records(path, record, count);

    if (!records && errno == ENOENT)
        fail(1,
             "this kernel does not count %s (no node %s; `sysinfo` lists "
             "the nodes): boot a kernel that is built with it",
             what, path);
    if (!records)
        sysinfo_fail(path);
    return records;
}

void add_percent(struct table *t, uint64_t part, uint64_t whole)
{
    table_add(t, "%.2f%%", whole > 0 ? 100.0 * part / whole : 0.0);
}

int main(int argc, char *argv[])
{
    view show = parse(argc, argv);
    int status = show(&settings);

    if (settings.json || show == show_uptime)
        putchar('\n');
    return sysinfo_finish() != 0 ? 1 : status;
}
