// sensors [OPTIONS] [PATH...]: lists sensors, or shows the values of some.
//
// Without arguments: all files of /sensors, by the kernel's list of them. With
// paths: what these contain, mapped read-only; so nothing that is done here
// reaches the task that writes them.
#include "user/libstrobe/options.h"
#include "user/libstrobe/sensor_print.h"
#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct settings {
    bool json, watch;
    const char *seconds, *times;
} settings;

static const struct tool_option options[] = {
    { 'w', "watch", NULL, "Show the values again, each second",
      .flag = &settings.watch },
    { 's', "seconds", "n", "With -w: each n seconds (1 to 3600)",
      .text = &settings.seconds },
    { 'n', "times", "n", "With -w: end after n times",
      .text = &settings.times },
    { 0, "json", NULL, "Print JSON, one line for each sensor",
      .flag = &settings.json },
    { 0 },
};
static const struct tool tool = {
    .usage = "sensors [OPTIONS] [PATH...]",
    .options = options,
    .notes = "Without a path all sensors are listed. A histogram is shown with "
             "a bar for\neach bin, a list with its events and the number of "
             "those lost.\n",
};

// --- the list

static void list(void)
{
    static const struct table_column columns[] = {
        { "Path", false }, { "Type", false },   { "State", false },
        { "Owner", true }, { "Readers", true }, { "Bytes", true },
    };
    struct table t;
    size_t count;
    struct sysinfo_sensor *all = sysinfo_read_sensor("system.sensors", &count);

    if (!all)
        sysinfo_fail("system.sensors");
    if (settings.json) {
        sysinfo_print_json(stdout, SYSINFO_RECORD_SENSOR, all, count);
        free(all);
        return;
    }
    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < count; i++) {
        table_add(&t, "%s", all[i].path);
        table_add(&t, "%s", all[i].type);
        table_add(&t, "%s", all[i].state);
        table_add(&t, "%" PRIu32, all[i].owner);
        table_add(&t, "%" PRIu32, all[i].readers);
        table_add(&t, "%" PRIu64, (uint64_t)all[i].bytes);
    }
    table_print(&t, stdout);
    free(all);
}

// --- values

static struct sensor_file *open_all(char **paths, int count)
{
    struct sensor_file *files = calloc((size_t)count, sizeof(*files));

    if (!files)
        fail(1, "not enough memory");
    for (int i = 0; i < count; i++) {
        const char *problem = sensor_file_open(&files[i], paths[i]);
        if (problem)
            fail(1, "%s: %s", paths[i], problem);
    }
    return files;
}

static void show(struct sensor_file *files, char **paths, int count)
{
    for (int i = 0; i < count; i++) {
        // The kernel's part of the header may have changed: closed.
        sensor_view_init(&files[i].view, files[i].memory, files[i].size);
        (settings.json ? sensor_print_json : sensor_print)(stdout, paths[i],
                                                           &files[i].view);
    }
    fflush(stdout);
}

static uint32_t number(const char *text, const char *option, uint32_t max)
{
    uint32_t n;

    if (!decimal(text, 1, max, &n)) {
        complain("%s %s: not a number from 1 to %" PRIu32, option, text, max);
        options_wrong(&tool);
    }
    return n;
}

static void watch(struct sensor_file *files, char **paths, int count)
{
    uint32_t seconds = 1, times = 0;

    if (settings.seconds)
        seconds = number(settings.seconds, "--seconds", 3600);
    if (settings.times)
        times = number(settings.times, "--times", 1000000);
    for (uint32_t i = 0; !times || i < times; i++) {
        if (i)
            sleep(seconds);
        if (!settings.json && isatty(STDOUT_FILENO))
            printf("\033[H\033[J");
        show(files, paths, count);
        if (ferror(stdout))
            exit(1);
    }
}

int main(int argc, char *argv[])
{
    int first = options_parse(&tool, argc, argv), count = argc - first;

    if (count == 0) {
        if (settings.watch) {
            complain("-w needs a path (sensors lists them)");
            options_wrong(&tool);
        }
        list();
        return 0;
    }
    struct sensor_file *files = open_all(argv + first, count);
    if (settings.watch)
        watch(files, argv + first, count);
    else
        show(files, argv + first, count);
    return 0;
}
