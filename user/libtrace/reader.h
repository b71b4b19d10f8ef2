// Reads what a trace gives (<strobe/trace.h>, "what DATA_READ stores"): checks
// every record, trusts nothing, and delivers the events of all CPUs in the
// order of time.
//
// Nothing but libc is used: host tests and host tools link it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <strobe/abi.h>
#include <strobe/kbox.h>
#include <strobe/trace.h>

#define TRACE_CPUS_MAX (uint32_t) STROBE_CPUS_MAX
#define TRACE_FIELDS_MAX 32u // bytes; longer records are of no known type

struct trace_event {
    uint64_t time;
    uint64_t number; // of the CPU's events: orders those of the same time
    uint32_t cpu;
    uint32_t thread; // that ran on the CPU; of a switch: the one that left
    uint32_t type;   // enum trace_number, or TRACE_R_...; LOST included
    uint32_t size;   // of the fields in the record
    bool partial; // other CPUs' events of that time are not kept: of a flight
    // The rest is 0. Of TRACE_R_CALL `function` is the entry address.
    uint8_t fields[TRACE_FIELDS_MAX];
};

struct trace_reader {
    // Called with each event, and with each record of a task.
    void (*event)(void *arg, const struct trace_event *e);
    void (*task)(void *arg, const struct sprofile_task *t); // may be NULL
    void *arg;
    uint64_t events, lost;  // so far, of all CPUs
    uint64_t partial_until; // events before are partial
    // The rest is the reader's.
    struct {
        uint64_t epoch;
        uint64_t number;
        uint32_t thread;
        bool known;     // there was a TIME record
        uint64_t last;  // the last event's time
        uint64_t until; // all before is here
    } cpu[TRACE_CPUS_MAX];
    struct trace_event *held; // not delivered yet
    size_t count, room;
};

// The reader is zeroed but for the first three members.
//
// Takes what one read stored. Returns NULL, or a message: then some of it was
// not understood, and what was before that is held.
const char *trace_reader_take(struct trace_reader *r, const void *bytes,
                              size_t size);
// Delivers all that is held: no more will come.
void trace_reader_finish(struct trace_reader *r);
void trace_reader_free(struct trace_reader *r);

// The fields of an event, as of points.def and strobe/trace.h. False: the
// record is too short for them.
bool trace_fields(const struct trace_event *e, void *out, size_t size);
