// What a trace has of sensors (trace_file.sensors), as text. The sensors'
// owners may have written anything: what is printed is sanitised.
#pragma once

#include "file.h"

#define SENSED_NAME_BYTES 64u

const struct recorded_sensor *sensed_sensor(const struct trace_file *f,
                                            const struct recorded *one);
// The sensor's path below /sensors, of printable characters.
void sensed_name(const struct recorded_sensor *s, char out[SENSED_NAME_BYTES]);
// The type of an event or record.
uint32_t sensed_type(const struct recorded *one);
// The payload of a record and its size in bytes. NULL: the entry is no record.
const void *sensed_payload(const struct recorded *one, uint32_t *bytes);
// The thread and the CPU of an event of a list. False: the entry is no event.
bool sensed_thread(const struct recorded *one, uint32_t *thread, uint32_t *cpu);
// The value of a scalar, the sum of a histogram's values. False: the entry is
// neither.
bool sensed_value(const struct recorded *one, uint64_t *value);
// The numbers of a loss. False: the entry is no loss.
bool sensed_loss(const struct recorded *one, uint64_t *lost, uint64_t *spoilt);

// The event's type and fields, the value, or the loss.
void sensed_text(FILE *out, const struct trace_file *f,
                 const struct recorded *one);
// Lines of the header: how many there are, and what is missing.
void sensed_header(FILE *out, const struct trace_file *f);
// A table: what each of them has. `ns`: the time of the trace.
void sensed_summary(FILE *out, const struct trace_file *f, uint64_t ns);
