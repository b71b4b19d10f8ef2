// Sensors as text or JSON, for the tools in the guest and on the host.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "lib/sensor_read.h"

// A mapped file. NULL: opened; else in words why not, and nothing is to be
// closed.
struct sensor_file {
    struct sensor_view view;
    void *memory;
    size_t size;
};
const char *sensor_file_open(struct sensor_file *f, const char *path);
void sensor_file_close(struct sensor_file *f);

// What it is, its description, and its present value: of histograms the cells
// that are not 0, of lists the events that are there. Two dimensions as a heat
// map (JSON: cells as [layer, y, x, count, cost]).
void sensor_print(FILE *out, const char *path, const struct sensor_view *v);
void sensor_print_json(FILE *out, const char *path,
                       const struct sensor_view *v);
