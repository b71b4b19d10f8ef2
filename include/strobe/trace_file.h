// Files of `trace record`: what a trace gave (<strobe/trace.h>), and the names
// to read it by. docs/trace.md describes them.
//
//     struct trace_file_head, then chunks: each a struct trace_file_chunk and
//     `bytes` of body
//
// All numbers are little-endian. A file that was cut off anywhere is read up to
// its last whole record. A reader skips kinds that it does not know, and what
// the head or a body has behind the fields that it knows; all other changes
// need another version.
#pragma once

#include <strobe/trace.h>

#define TRACE_FILE_MAGIC "strobtrc"
#define TRACE_FILE_VERSION 1u

struct trace_file_head {
    char magic[8];
    uint32_t version;
    uint32_t bytes; // of this head
    uint32_t trace_version, cpus;
    uint32_t points, task; // as in struct trace_options
    uint32_t tsc_hz[2];    // low word first
    // struct trace_info; older files end before them
    uint32_t event_cycles, tsc_error_ppm;
};

enum trace_file_kind {
    // A line for each point, in the order of their numbers: GROUP/NAME, then
    // FIELD:BITS of each field. A reader refuses a table that is not its own.
    TRACE_FILE_POINTS = 1,
    TRACE_FILE_COMMAND, // text: what was run
    TRACE_FILE_THREAD,  // struct trace_file_thread: from here on
    TRACE_FILE_BLOCKS,  // what one DATA_READ stored
    TRACE_FILE_END,     // struct trace_file_end; missing: it was cut off
    TRACE_FILE_FLIGHT,  // struct trace_file_flight: it has only the last events
    // What sensors had: chunks of <strobe/sensor_recording.h>. The bodies of
    // all these, one after the other, are a recording without its head.
    TRACE_FILE_SENSORS,
    // If functions are traced: text, a line of each in system.functions:
    // ADDRESS SIZE NAME FILE, the address in hexadecimal.
    TRACE_FILE_FUNCTIONS,
    // text: what the counters of sched/pmc count, a line of each.
    TRACE_FILE_COUNTERS,
};

struct trace_file_chunk {
    uint32_t kind, bytes;
};

struct trace_file_thread {
    uint32_t thread, task;
    char name[16]; // padded with NULs
};

struct trace_file_flight {
    uint32_t ms;                       // trace_options.flight_ms
    uint32_t overwritten[2], since[2]; // struct trace_info, low word first
};

enum trace_file_reason {
    TRACE_FILE_ENDED = 1, // the command, the task or the user ended it
    TRACE_FILE_FULL,      // there was no room for more in the file system
};

struct trace_file_end {
    uint32_t reason;
    uint32_t tasks_lost;
    // Of struct trace_info, low word first. Older files end before the last.
    uint32_t recorded[2], lost[2], throttled[2];
};
