// Reads a file of `trace record` (<strobe/trace_file.h>): what it says of
// itself, its names, and its events in the order of time. Trusts nothing; only
// libc is used.
#pragma once

#include "reader.h"
#include "user/libprofile/functions.h"

#include "user/libstrobe/sensor_recording.h"

#include <stdio.h>

#include <strobe/trace_file.h>

struct trace_name;

struct trace_file {
    struct trace_file_head head;     // fields that the file's head lacks are 0
    struct trace_file_end end;       // if has_end
    bool has_end;                    // else it was cut off
    struct trace_file_flight flight; // ms: 0: not a flight recording
    char command[256];               // "": none
    struct functions functions;      // that it names; count 0: none
    // What sched/pmc counts; "first" and "second" if it does not say.
    char counters[TRACE_COUNTERS][TRACE_COUNTER_NAME];
    uint64_t tsc_hz;            // never 0
    struct trace_reader reader; // its events and losses so far
    struct recording sensors;   // in the order of time
    // May be set: trace_file_events() calls it with what the sensors had, in
    // the order of time between the events.
    void (*sensed)(void *arg, const struct recorded *one);
    // The rest is file.c's.
    FILE *in;
    uint64_t bytes;
    struct trace_name *names;
    uint32_t name_count, name_room;
    struct trace_name *changes; // of names, in the order of time
    uint32_t change_count, change_room, changed;
    bool has_sensors; // `sensors` is there
    uint8_t *chunks;  // of sensors, until then
    size_t chunks_used, chunks_room;
    size_t sensed_count; // of `sensors`: told so far
    void (*event)(void *arg, const struct trace_event *e);
    void *arg;
};

// Returns NULL, or why the file cannot be read; then there is nothing to close.
// A file that was cut off behind its table of points can be read.
const char *trace_file_open(struct trace_file *f, const char *path);
// Delivers all events, in the order of time, once for each call: those of the
// kernel to `event`, those of sensors to f->sensed, both with `arg`. Returns
// NULL, or what is wrong with the file: what precedes that was delivered. That
// the file was cut off is nothing wrong.
const char *trace_file_events(struct trace_file *f,
                              void (*event)(void *arg,
                                            const struct trace_event *e),
                              void *arg);
void trace_file_close(struct trace_file *f);

// Both points' events, such as TRACE_sched_switch, are in the trace.
static inline bool trace_file_has(const struct trace_file *f, uint32_t one,
                                  uint32_t other)
{
    uint32_t wanted = 1u << one | 1u << other;

    return (f->head.points & wanted) == wanted;
}

// "NAME:THREAD", "[idle]", or "?:THREAD": as of the event that is delivered.
void trace_file_thread(const struct trace_file *f, uint32_t thread,
                       char out[32]);
// The thread's name as of then, NULL: unknown. *task is its task, 0: unknown.
const char *trace_file_name(const struct trace_file *f, uint32_t thread,
                            uint32_t *task);
// The Nth thread that has a name, with its number. NULL: there are fewer.
const char *trace_file_nth_name(const struct trace_file *f, uint32_t n,
                                uint32_t *thread);
// The name of the function at the address, or the address in hexadecimal if the
// file does not name it. `out`: TRACE_FUNCTION_BYTES.
#define TRACE_FUNCTION_BYTES 80u
void trace_file_function(const struct trace_file *f, uint32_t address,
                         char *out);
// Of a flight: the time from which on all CPUs' events are there. 0: they are.
uint64_t trace_file_whole_since(const struct trace_file *f);
uint64_t trace_file_ns(const struct trace_file *f, uint64_t cycles);
