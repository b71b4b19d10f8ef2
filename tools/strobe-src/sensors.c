// strobe sensors [OPTIONS] FILE...: shows sensors that programs keep in files
// on this machine.
#include "strobe.h"

#include "user/libstrobe/sensor_print.h"

static bool json;

static const struct tool_option options[] = {
    { 0, "json", NULL, "Print JSON, one line for each sensor", .flag = &json },
    { 0 },
};
static const struct tool tool = {
    .usage = "strobe sensors [OPTIONS] FILE...",
    .options = options,
    .notes = "On Linux, programs with user/libstrobe/sensor.h keep them in "
             "/dev/shm/sensors.\n",
};

int command_sensors(int argc, char *argv[])
{
    int status = 0, first = options_parse(&tool, argc, argv);

    if (first == argc) {
        complain("sensors: which file?");
        options_wrong(&tool);
    }
    for (int i = first; i < argc; i++) {
        struct sensor_file f;
        const char *problem = sensor_file_open(&f, argv[i]);

        if (problem) {
            complain("%s: %s", argv[i], problem);
            status = 1;
            continue;
        }
        (json ? sensor_print_json : sensor_print)(stdout, argv[i], &f.view);
        sensor_file_close(&f);
    }
    return status;
}
