// Sensors as text or JSON, for the tools in the guest and on the host.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "user/libread/sensor_read.h"

// A mapped file. NULL: opened; else in words why not, and nothing is to be
// closed.
struct sensor_file {
    struct sensor_view view;
    void *memory;
    size_t size;
    int fd; // while it is open, a sensor of the kernel is on
};
const char *sensor_file_open(struct sensor_file *f, const char *path);
void sensor_file_close(struct sensor_file *f);

// One event of a list, or record of a ring: a line, or an object of JSON.
// `text`: the sensor's description, which names the fields.
void sensor_print_event(FILE *out, const char *text, uint32_t number,
                        const struct sensor_event *e, bool json);
void sensor_print_record(FILE *out, const char *text,
                         const struct sensor_record *r, bool json);

// The name of its type and its fields alone, each behind a separator; what is
// not described as words.
void sensor_print_fields(FILE *out, const char *text, uint32_t type,
                         const void *bytes, uint32_t size, bool json);

// A row of a heat map: the counts of a histogram's bins, of several together if
// there are more than columns. With layers: the mean cost, in thousandths.
#define SENSOR_HEAT_COLUMNS 64
struct sensor_heat {
    uint64_t columns[SENSOR_HEAT_COLUMNS], most;
    uint64_t top; // has the darkest shade
};
struct sensor_heat sensor_heat_of(const struct sensor_view *v, uint32_t layer,
                                  uint32_t row);
void sensor_print_heat(FILE *out, const struct sensor_view *v,
                       const struct sensor_heat *heat, uint32_t label);

// What it is, its description, and its present value: of histograms the cells
// that are not 0, of lists and rings the events that are there. Two dimensions
// as a heat map (JSON: cells as [layer, y, x, count, cost]).
void sensor_print(FILE *out, const char *path, const struct sensor_view *v);
void sensor_print_json(FILE *out, const char *path,
                       const struct sensor_view *v);
