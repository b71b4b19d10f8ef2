// strobe sensors [OPTIONS] FILE...: shows sensors that programs keep in files
// on this machine, and prints or converts recordings of `sensors record`.
#include "strobe.h"

#include "user/libstrobe/sensor_print.h"
#include "user/libstrobe/sensor_recording.h"

static bool json, csv;

static const struct tool_option options[] = {
    { 0, "json", NULL, "Print JSON: a line for each sensor, sample and event",
      .flag = &json },
    { 0, "csv", NULL, "Print a recording as CSV: a row for each number",
      .flag = &csv },
    { 0 },
};
static const struct tool tool = {
    .usage = "strobe sensors [OPTIONS] FILE...",
    .options = options,
    .notes = "FILE is from `sensors record`, or a sensor: on Linux, programs "
             "with\nuser/libstrobe/sensor.h keep them in /dev/shm/sensors.\n",
};

static const char *print_sensor(const char *path)
{
    struct sensor_file f;
    const char *problem = sensor_file_open(&f, path);

    if (!problem) {
        (json ? sensor_print_json : sensor_print)(stdout, path, &f.view);
        sensor_file_close(&f);
    }
    return problem;
}

// Returns why it was not printed, or NULL.
static const char *print(const char *path)
{
    struct recording r;

    if (!recording_is_file(path))
        return csv ? "it is not a recording: only these are converted to CSV"
                   : print_sensor(path);
    const char *problem = recording_open(&r, path);
    if (!problem) {
        recording_print(stdout, &r,
                        json  ? RECORDING_JSON
                        : csv ? RECORDING_CSV
                              : RECORDING_TEXT);
        recording_close(&r);
    }
    return problem;
}

int command_sensors(int argc, char *argv[])
{
    int status = 0, first = options_parse(&tool, argc, argv);

    if (first == argc) {
        complain("sensors: which file?");
        options_wrong(&tool);
    }
    for (int i = first; i < argc; i++) {
        const char *problem = print(argv[i]);
        if (problem) {
            complain("%s: %s", argv[i], problem);
            status = 1;
        }
    }
    return status;
}
