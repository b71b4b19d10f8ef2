// The sensors that are recorded with a trace (-s).
#pragma once

#include "out.h"

#include "user/libstrobe/sensor_recorder.h"

struct trace_sensors {
    const char *patterns; // NULL: none are
    bool flight;
    struct sensor_recorder recorder;
    uint64_t tsc_hz;
    struct trace_out *out; // where a sample goes
    uint8_t *bytes;        // whole chunks of sensors, and one that is begun
    size_t used, room;
    size_t rest; // bytes of that one that are still to come
    bool no_memory;
};

// Begins with the events from now on. From here to the end SIGALRM comes at
// the interval. Nothing, as the others do, if `patterns` is NULL.
void sensors_begin(struct trace_sensors *s, const char *patterns,
                   uint64_t interval_ns, const struct trace_info *info,
                   bool flight, struct trace_out *out);
// After SIGALRM: takes what there is. In a flight only new sensors are opened.
void sensors_sample(struct trace_sensors *s);
// The last sample.
void sensors_end(struct trace_sensors *s);
// Of a flight: what the sensors have now of the last `ms`.
void sensors_put_flight(struct trace_sensors *s, uint32_t ms,
                        struct trace_out *out);
// Prints what is missing.
void sensors_report(const struct trace_sensors *s);
