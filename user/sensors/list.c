// The list of all sensors, and how often each changes.
//
// The rate is what is counted in RATE_MS: opening a sensor of the kernel would
// switch it on, so only those that are open already have one.
#include "sensors.h"

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RATE_MS 200
#define NO_RATE (-1.0)

struct rated {
    struct sensor_file file;
    bool open;
    uint64_t count;
    double rate; // per second; NO_RATE
};

// How much a sensor has counted so far: values, events, records; of a scalar
// its value.
static uint64_t count_of(const struct sensor_view *v)
{
    struct sensor_totals t;

    switch (v->header.layout.type) {
    case SENSOR_SCALAR:
        return sensor_view_scalar(v);
    case SENSOR_HISTOGRAM:
        t = sensor_view_totals(v);
        return t.count + t.under + t.over;
    default:
        return sensor_view_numbers(v);
    }
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool has_rate(const struct sensor_view *v)
{
    return v->header.layout.type != SENSOR_SCALAR ||
           v->header.layout.scalar.kind == SENSOR_COUNTER;
}

static struct rated *rate_all(const struct sysinfo_sensor *all, size_t count)
{
    struct rated *rated = calloc(count, sizeof(*rated));
    const struct timespec pause = { .tv_nsec = RATE_MS * 1000000 };

    if (!rated)
        fail(1, "not enough memory");
    double begin = now();
    for (size_t i = 0; i < count; i++) {
        struct rated *r = &rated[i];
        r->rate = NO_RATE;
        if (strcmp(all[i].state, "open") != 0 ||
            sensor_file_open(&r->file, all[i].path))
            continue;
        r->open = true;
        r->count = count_of(&r->file.view);
    }
    nanosleep(&pause, NULL);
    for (size_t i = 0; i < count; i++) {
        struct rated *r = &rated[i];
        if (!r->open)
            continue;
        // A counter that its owner has set back has no rate.
        uint64_t more = count_of(&r->file.view) - r->count;
        if (has_rate(&r->file.view) && (int64_t)more >= 0)
            r->rate = (double)more / (now() - begin);
        sensor_file_close(&r->file);
    }
    return rated;
}

static void print_table(const struct sysinfo_sensor *all,
                        const struct rated *rated, size_t count)
{
    static const struct table_column columns[] = {
        { "Path", false },  { "Type", false },   { "State", false },
        { "Owner", true },  { "Readers", true }, { "Bytes", true },
        { "Rate/s", true },
    };
    struct table t;

    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < count; i++) {
        table_add(&t, "%s", all[i].path);
        table_add(&t, "%s", all[i].type);
        table_add(&t, "%s", all[i].state);
        table_add(&t, "%" PRIu32, all[i].owner);
        table_add(&t, "%" PRIu32, all[i].readers);
        table_add(&t, "%" PRIu64, (uint64_t)all[i].bytes);
        if (rated[i].rate >= 0)
            table_add(&t, "%.0f", rated[i].rate);
        else
            table_add(&t, "-");
    }
    table_print(&t, stdout);
}

void list_sensors(bool json)
{
    size_t count;
    struct sysinfo_sensor *all = sysinfo_read_sensor("system.sensors", &count);

    if (!all)
        sysinfo_fail("system.sensors");
    if (json) {
        sysinfo_print_json(stdout, SYSINFO_RECORD_SENSOR, all, count);
    } else {
        struct rated *rated = rate_all(all, count);
        print_table(all, rated, count);
        free(rated);
    }
    free(all);
}
