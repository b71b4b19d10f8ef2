// tasks [OPTIONS]: lists tasks, threads, CPUs, and the system's load.
//
// Options, columns and number formats are those of the tasks utility of the
// thesis that Strobe's monitoring follows (appendix A.1 and B.1). Times are
// seconds:milliseconds.
#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define MS_PER_SECOND 1000

static struct settings {
    bool threads, load, cpus, json;
    bool one_task; // -t
    uint32_t task;
    uint64_t hz;
} settings;

static const struct tool_option options[] = {
    { 't', "task", "task_id", "List threads of the given task",
      .task = &settings.task, .flag = &settings.one_task },
    { 'a', "all", NULL, "List all threads", .flag = &settings.threads },
    { 'l', "load", NULL, "Print system load", .flag = &settings.load },
    { 'c', "cpu", NULL, "List CPUs", .flag = &settings.cpus },
    { 0, "json", NULL, "Print JSON, times in cycles", .flag = &settings.json },
    { 0 },
};
static const struct tool tool = {
    .usage = "tasks [OPTIONS]",
    .options = options,
    .notes = "Without any options all tasks are listed\n",
    .no_operands = "tasks takes options only (-t for a task)",
};

// ---- lists

static void list_tasks(const struct settings *s)
{
    size_t count;
    struct sysinfo_task *tasks = sysinfo_read_task("system.tasks", &count);

    if (!tasks)
        sysinfo_fail("system.tasks");
    if (s->json) {
        printf("\"tasks\": ");
        sysinfo_print_json(stdout, SYSINFO_RECORD_TASK, tasks, count);
        free(tasks);
        return;
    }
    printf("  ID  Threads      Mem      uTime      sTime Name\n");
    for (size_t i = 0; i < count; i++) {
        struct sysinfo_task *t = &tasks[i];
        uint64_t user = sysinfo_milliseconds(t->user, s->hz);
        uint64_t kernel = sysinfo_milliseconds(t->kernel, s->hz);
        printf("%4" PRIu32 " %5" PRIu32 " %9" PRIu64 " %6" PRIu64 ":%2" PRIu64
               " %6" PRIu64 ":%2" PRIu64 " %s\n",
               t->id, t->threads, (uint64_t)t->virtual, user / MS_PER_SECOND,
               user % MS_PER_SECOND, kernel / MS_PER_SECOND,
               kernel % MS_PER_SECOND, printable(t->name));
    }
    free(tasks);
}

static void add_time(struct table *t, uint64_t cycles, uint64_t hz)
{
    uint64_t ms = sysinfo_milliseconds(cycles, hz);

    table_add(t, "%" PRIu64 ":%2" PRIu64, ms / MS_PER_SECOND,
              ms % MS_PER_SECOND);
}

static void print_threads(const struct settings *s,
                          const struct sysinfo_thread *threads, size_t count)
{
    static const struct table_column columns[] = {
        { "ID", true },     { "Task", true },   { "State", false },
        { "CPU", true },    { "Prio", true },   { "uTime", true },
        { "sTime", true },  { "Switch", true }, { "Name", false },
        { "Waits", false },
    };
    struct table table;

    table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < count; i++) {
        const struct sysinfo_thread *t = &threads[i];
        table_add(&table, "%" PRIu32, t->id);
        table_add(&table, "%" PRIu32, t->task);
        table_add(&table, "%s", sysinfo_state_name(t->state));
        table_add(&table, "%" PRIu32, t->cpu);
        table_add(&table, "%" PRIu32, t->priority);
        add_time(&table, t->user, s->hz);
        add_time(&table, t->kernel, s->hz);
        table_add(&table, "%" PRIu64, t->voluntary + t->forced);
        table_add(&table, "%s", t->name);
        table_add(&table, "%s", t->wait_on);
    }
    table_print(&table, stdout);
}

static void list_threads(const struct settings *s)
{
    char path[SYSINFO_PATH_MAX] = "system.threads";
    struct sysinfo_thread *threads;
    size_t count;

    if (s->one_task)
        snprintf(path, sizeof(path), "system.tasks.%" PRIu32 ".threads",
                 s->task);
    threads = sysinfo_read_thread(path, &count);
    if (!threads && errno == ENOENT && s->one_task)
        fail(1, "no such task: %" PRIu32 " (see tasks)", s->task);
    if (!threads)
        sysinfo_fail(path);
    if (s->json) {
        printf("\"threads\": ");
        sysinfo_print_json(stdout, SYSINFO_RECORD_THREAD, threads, count);
    } else {
        print_threads(s, threads, count);
    }
    free(threads);
}

static void print_load(const struct settings *s)
{
    struct sysinfo_load load;

    if (sysinfo_get_load("system.load", &load) < 0)
        sysinfo_fail("system.load");
    if (s->json) {
        printf("\"load\": ");
        sysinfo_print_json_record(stdout, SYSINFO_RECORD_LOAD, &load);
        return;
    }
    const uint32_t values[] = { load.one, load.five, load.fifteen };
    printf("Load average:");
    for (int i = 0; i < 3; i++) {
        uint32_t hundredths = sysinfo_hundredths(values[i]);
        printf(" %" PRIu32 ".%02" PRIu32, hundredths / 100, hundredths % 100);
    }
    putchar('\n');
}

static void add_percent(struct table *t, uint64_t part, uint64_t whole)
{
    table_add(t, "%.2f%%", whole > 0 ? 100.0 * part / whole : 0.0);
}

static void list_cpus(const struct settings *s)
{
    static const struct table_column columns[] = {
        { "CPU", true },     { "MHz", true },    { "Busy ms", true },
        { "Idle ms", true }, { "Idle", true },   { "User", true },
        { "Kernel", true },  { "Irq", true },    { "Switches", true },
        { "Core", true },    { "L2 KiB", true },
    };
    size_t count;
    struct sysinfo_cpu *cpus = sysinfo_read_cpu("system.cpus", &count);
    struct table table;

    if (!cpus)
        sysinfo_fail("system.cpus");
    if (s->json) {
        printf("\"cpus\": ");
        sysinfo_print_json(stdout, SYSINFO_RECORD_CPU, cpus, count);
        free(cpus);
        return;
    }
    table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < count; i++) {
        const struct sysinfo_cpu *c = &cpus[i];
        table_add(&table, "%" PRIu32, c->id);
        table_add(&table, "%" PRIu64, c->frequency / 1000000);
        table_add(&table, "%" PRIu64, sysinfo_milliseconds(c->busy, s->hz));
        table_add(&table, "%" PRIu64, sysinfo_milliseconds(c->idle, s->hz));
        add_percent(&table, c->idle, c->elapsed);
        add_percent(&table, c->user, c->elapsed);
        add_percent(&table, c->kernel + c->start_up, c->elapsed);
        add_percent(&table, c->irq, c->elapsed);
        table_add(&table, "%" PRIu64, (uint64_t)c->switches);
        // package:core.thread, and which kind of core
        table_add(&table, "%" PRIu32 ":%" PRIu32 ".%" PRIu32 "%s%.1s",
                  c->package, c->core, c->thread, *c->kind ? " " : "", c->kind);
        table_add(&table, "%" PRIu32, c->l2 / 1024);
    }
    table_print(&table, stdout);
    free(cpus);
}

int main(int argc, char *argv[])
{
    struct settings *s = &settings;

    options_parse(&tool, argc, argv);
    s->threads |= s->one_task;
    s->hz = sysinfo_frequency();
    const struct {
        bool wanted;
        void (*show)(const struct settings *s);
    } parts[] = {
        { s->load, print_load },
        { s->cpus, list_cpus },
        { s->threads, list_threads },
        { !s->load && !s->cpus && !s->threads, list_tasks },
    };
    const char *separator = s->json ? "{" : "";
    for (int i = 0; i < 4; i++) {
        if (!parts[i].wanted)
            continue;
        fputs(separator, stdout);
        parts[i].show(s);
        separator = s->json ? ",\n" : "\n";
    }
    if (s->json)
        printf("}\n");
    return sysinfo_finish();
}
