// sensors: lists sensors, shows the values of some once (PATH...) or again and
// again (watch), or writes them into a file (record).
//
// Without arguments: all files of /sensors, by the kernel's list of them. With
// paths: what these contain, mapped read-only; so nothing that is done here
// reaches the task that writes them.
#include "sensors.h"

#include "user/libstrobe/options.h"
#include "user/libstrobe/sensor_recording.h"
#include "user/libstrobe/strobe.h"

#include <stdlib.h>
#include <string.h>

static bool json;

static const struct tool_option options[] = {
    { 0, "json", NULL, "Print JSON, one line for each sensor", .flag = &json },
    { 0 },
};
static const struct tool tool = {
    .usage = "sensors [OPTIONS] [PATH...]\n"
             "       sensors watch [OPTIONS] PATH...\n"
             "       sensors record -o FILE [OPTIONS] PATH... [-- COMMAND...]",
    .options = options,
    .notes = "Without a path all sensors are listed. A histogram is shown with "
             "a bar for\neach bin, a list or ring with its events and the "
             "number of those lost; a\nfile of `sensors record` in the order "
             "of time. `sensors watch --help` and\n`sensors record --help` "
             "tell more.\n",
};

struct sensor_file *open_sensors(char **paths, int count)
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

static const char *show_recording(const char *path)
{
    struct recording r;
    const char *problem = recording_open(&r, path);

    if (!problem) {
        recording_print(stdout, &r, json ? RECORDING_JSON : RECORDING_TEXT);
        recording_close(&r);
    }
    return problem;
}

static const char *show(const char *path)
{
    struct sensor_file f;

    if (recording_is_file(path))
        return show_recording(path);
    const char *problem = sensor_file_open(&f, path);
    if (!problem) {
        (json ? sensor_print_json : sensor_print)(stdout, path, &f.view);
        sensor_file_close(&f);
    }
    return problem;
}

int main(int argc, char *argv[])
{
    if (argc > 1 && strcmp(argv[1], "record") == 0)
        return record_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "watch") == 0)
        return watch_command(argc - 1, argv + 1);
    int first = options_parse(&tool, argc, argv);
    if (first == argc)
        list_sensors(json);
    for (int i = first; i < argc; i++) {
        const char *problem = show(argv[i]);
        if (problem)
            fail(1, "%s: %s", argv[i], problem);
    }
    return 0;
}
