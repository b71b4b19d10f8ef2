// The events in the ring of a trace, for user/libread/sensor_ring_read.c.
#pragma once

#include "user/libread/sensor_read.h"

// Bytes of an event with its head and thread.
#define SENSOR_TRACE_RECORD_MAX 148u

// Begins with the oldest page that is there.
void sensor_trace_begin(struct sensor_trace_place *p,
                        const struct sensor_view *v);
// The next event, with its number, the time, and the thread that ran before its
// fields. False: there is none now. p->number is that of the next event; what
// is missing has been skipped.
bool sensor_trace_next(struct sensor_trace_place *p,
                       const struct sensor_view *v, bool over,
                       struct sensor_record *out);
// The numbers taken so far.
uint32_t sensor_trace_numbers(const struct sensor_view *v);
