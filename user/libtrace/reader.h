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
#define TRACE_FIELDS_MAX 32u // bytes; the types of longer records are unknown

struct trace_event {
    uint64_t time;
    uint32_t cpu;
    uint32_t thread; // that ran on the CPU; of a switch: the one that left
    uint32_t type;   // enum trace_number, or TRACE_R_...; LOST included
    uint32_t size;   // of the fields in the record
    // Until the callback returns. As many bytes as points.def and
    // strobe/trace.h have of the type, and 8 at least: 0 where the record has
    // none. Of TRACE_R_CALL `function` is the entry address.
    const uint8_t *fields;
    bool partial; // other CPUs' events of that time are not kept: of a flight
};

struct trace_reader_cpu {
    uint64_t last; // the time of the last event that was taken
    // The rest is the reader's.
    uint64_t epoch;    // of the records that were taken
    bool known;        // there was a TIME record
    uint32_t last_low; // of `last`: its part in a record's head
    uint64_t until;    // all before is here
    // The records from the next event on: during a take they may be the
    // caller's, and are in `memory` after it.
    const uint8_t *at, *end;
    const uint8_t *behind; // the next event, from where decoding goes on
    uint8_t *memory;
    size_t room;
    struct trace_event next;
    bool is_next;        // it is decoded
    uint64_t next_epoch; // of the records up to `behind`
    uint32_t thread;
    uint8_t padded[TRACE_FIELDS_MAX]; // fields of `next`
};

struct trace_reader {
    // Called with each event, and with each record of a task.
    void (*event)(void *arg, const struct trace_event *e);
    void (*task)(void *arg, const struct sprofile_task *t); // may be NULL
    // May be NULL. With each entry of a function, before what was taken with
    // it is delivered.
    void (*entry)(void *arg, uint32_t function);
    void *arg;
    uint64_t events, lost;  // so far, of all CPUs
    uint64_t partial_until; // events before are partial
    struct trace_reader_cpu *cpu;
    uint32_t cpus; // that records were taken of, and those before them
};

// The reader is zeroed but for the functions and `arg`.
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
