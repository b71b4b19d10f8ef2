// sensors watch: the values of some sensors again and again; of histograms in
// one dimension also a heat map over time, with a row for each interval.
#include "sensors.h"

#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct settings {
    bool json;
    uint32_t seconds, times;
} settings = { .seconds = 1 };

static const struct tool_option options[] = {
    { 's', "seconds", "n", "Each n seconds (1 to 3600; 1)",
      .number = &settings.seconds, .min = 1, .max = 3600 },
    { 'n', "times", "n", "End after n times", .number = &settings.times,
      .min = 1, .max = 1000000 },
    { 0, "json", NULL, "Print JSON, one line for each sensor and time",
      .flag = &settings.json },
    { 0 },
};
static const struct tool tool = {
    .usage = "sensors watch [OPTIONS] PATH...",
    .options = options,
    .notes = "Of a histogram in one dimension, rows show what was counted in "
             "each interval,\nthe last one below.\n",
};

// --- histograms over time ----------------------------------------------------

#define HISTORY 16 // rows

struct history {
    struct sensor_heat now;           // at the last time
    struct sensor_heat rows[HISTORY]; // what was added in an interval
    uint32_t begun;                   // intervals
};

// Adds a row: what was counted since the last time.
static void add_row(struct history *h, const struct sensor_view *v)
{
    struct sensor_heat now = sensor_heat_of(v, 0, 0);
    struct sensor_heat *row = &h->rows[h->begun++ % HISTORY];

    row->most = 0;
    for (uint32_t i = 0; i < SENSOR_HEAT_COLUMNS; i++) {
        // An owner may set it back.
        row->columns[i] = now.columns[i] > h->now.columns[i]
                              ? now.columns[i] - h->now.columns[i]
                              : 0;
        if (row->columns[i] > row->most)
            row->most = row->columns[i];
    }
    row->top = row->most;
    h->now = now;
}

static void print_history(const struct history *h, const struct sensor_view *v)
{
    const struct sensor_axis *x = &v->header.layout.histogram.x;
    uint32_t rows = h->begun < HISTORY ? h->begun : HISTORY;

    printf("  interval | x from %" PRIu32 " to %" PRIu32 "\n",
           sensor_bin_start(x, 0), sensor_bin_start(x, x->bins - 1));
    for (uint32_t i = h->begun - rows; i != h->begun; i++)
        sensor_print_heat(stdout, v, &h->rows[i % HISTORY], i + 1);
}

static bool is_flat_histogram(const struct sensor_view *v)
{
    return v->header.layout.type == SENSOR_HISTOGRAM &&
           !v->header.layout.histogram.y.bins &&
           !v->header.layout.histogram.layers;
}

// --- all ---------------------------------------------------------------------

static void show(struct sensor_file *f, const char *path, struct history *h,
                 bool first)
{
    // The kernel's part of the header may have changed: closed.
    if (sensor_view_init(&f->view, f->memory, f->size)) {
        complain("%s: it is spoilt", path);
        return;
    }
    (settings.json ? sensor_print_json : sensor_print)(stdout, path, &f->view);
    if (settings.json || !is_flat_histogram(&f->view))
        return;
    if (first)
        h->now = sensor_heat_of(&f->view, 0, 0);
    else
        add_row(h, &f->view);
    if (h->begun)
        print_history(h, &f->view);
}

int watch_command(int argc, char *argv[])
{
    int first = options_parse(&tool, argc, argv), count = argc - first;

    if (count == 0) {
        complain("watch: which sensors? (`sensors` lists them)");
        options_wrong(&tool);
    }
    struct sensor_file *files = open_sensors(argv + first, count);
    struct history *histories = calloc((size_t)count, sizeof(*histories));
    if (!histories)
        fail(1, "not enough memory");
    for (uint32_t i = 0; !settings.times || i < settings.times; i++) {
        if (i)
            sleep(settings.seconds);
        if (!settings.json && isatty(STDOUT_FILENO))
            printf("\033[H\033[J");
        for (int j = 0; j < count; j++)
            show(&files[j], argv[first + j], &histories[j], i == 0);
        if (fflush(stdout) != 0)
            return 1;
    }
    return 0;
}
