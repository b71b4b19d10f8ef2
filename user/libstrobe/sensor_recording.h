// Reading files of `sensors record` (<strobe/sensor_recording.h>), which may
// have any content: what is returned lies within the file and has been checked.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <strobe/sensor_recording.h>

#include "user/libread/sensor_read.h"

struct recorded_sensor {
    struct sensor_layout layout; // valid
    uint32_t owner;
    uint64_t tsc_hz;
    char *path, *text;
};

// What happened, in the order of the file.
struct recorded {
    enum recording_kind kind;
    uint32_t source; // a sensor of the recording; TIME, END: 0
    uint64_t tsc;    // event: its time; else that of the sample
    const void *body;
    uint32_t bytes;
};

struct recording {
    uint64_t interval_ns;
    uint64_t tsc_hz; // 0: the file does not say it
    uint32_t tsc_error_ppm;
    struct recorded_sensor *sensors;
    uint32_t sensor_count;
    struct recorded *all;
    size_t count, room;
    uint64_t first_ns, last_ns, first_tsc, last_tsc;
    uint32_t samples;
    bool ended;     // as it was asked to
    size_t cut_off; // bytes at the end that are no whole chunk
    size_t unknown; // chunks that were skipped: not known, or not valid
    void *file;     // its bytes
    size_t size;
    bool mapped; // else on the heap
};

// Whether the file begins as one does.
bool recording_is_file(const char *path);
// NULL, or in words why it cannot be read; then there is nothing to close.
const char *recording_open(struct recording *r, const char *path);
// The same of chunks without a head, at a multiple of 4, which are the
// recording's from here on: recording_close() frees them.
const char *recording_of_chunks(struct recording *r, void *chunks, size_t size);
void recording_close(struct recording *r);

// The body of an event or a record.
const struct sensor_event *recorded_event(const struct recorded *one);
const struct sensor_record *recorded_record(const struct recorded *one);

// Puts `all` into the order of time; what has the same time stays in order.
// Returns the most by which an event of a list was before its predecessor: the
// window, in TSC cycles, within which a merge has to look ahead.
uint64_t recording_merge(struct recording *r);
// Seconds since the first sample.
double recording_seconds(const struct recording *r, uint64_t tsc);

enum recording_format { RECORDING_TEXT, RECORDING_JSON, RECORDING_CSV };
// Merges and prints it (sensor_recording_print.c).
void recording_print(FILE *out, struct recording *r,
                     enum recording_format format);
