// Files of `sensors record`: the values of sensors over time, and the events of
// lists and rings. docs/sensors.md describes them.
//
//     struct recording_head, then chunks, each a struct recording_chunk and
//     `bytes` of body, a multiple of 4
//
// All numbers are little-endian words of 32 bits; those of 64 are two of them,
// the low one first. A file that was cut off is read up to its last whole
// chunk. A reader skips kinds that it does not know, and what a body has behind
// the fields that it knows; other changes need another version.
#pragma once

#include <strobe/sensor.h>

#define RECORDING_MAGIC "strobsns"
#define RECORDING_VERSION 1u

struct recording_head {
    char magic[8];
    uint32_t version;
    uint32_t bytes; // of this head
    struct sensor_wide interval_ns;
    // When it began, and how far that may be off; earlier files end here.
    struct sensor_wide tsc_hz;
    uint32_t tsc_error_ppm;
};
#define RECORDING_HEAD_LEAST 24u // bytes

enum recording_kind {
    RECORDING_SENSOR = 1, // before what it has in the file
    RECORDING_TIME,       // of the samples up to the next one
    RECORDING_SCALAR,
    RECORDING_HISTOGRAM, // the cells that have changed since the last sample
    RECORDING_EVENT,     // of a list
    RECORDING_RECORD,    // of a ring
    RECORDING_LOSS,      // if there was one, before the next event or record
    RECORDING_END,       // the recording ended as it was asked to
};

struct recording_chunk {
    uint32_t kind, bytes;
};

struct recording_sensor {
    uint32_t source; // its number in this file, from 0 on
    uint32_t owner;  // task; 0: the kernel
    struct sensor_layout layout;
    struct sensor_wide created_ns, tsc_hz;
    uint32_t path_bytes, text_bytes; // of the strings that follow, without NULs
};

// One reading of both clocks: since the start of the machine, and TSC.
struct recording_time {
    struct sensor_wide ns, tsc;
};

struct recording_scalar {
    uint32_t source;
    struct sensor_wide value;
};

struct recording_cell {
    uint32_t cell; // (layer * rows + row) * columns + column
    struct sensor_wide count, cost;
};

struct recording_histogram {
    uint32_t source;
    struct sensor_wide sum, under, over;
    uint32_t least, most;
    uint32_t cells; // that follow: struct recording_cell
};

// Then struct sensor_event, and its payload.
struct recording_event {
    uint32_t source, number;
};

// Then struct sensor_record, and its payload.
struct recording_record {
    uint32_t source;
};

struct recording_loss {
    uint32_t source;
    struct sensor_wide lost, spoilt; // since the last one
};
