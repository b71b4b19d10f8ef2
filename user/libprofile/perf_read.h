// Reads perf.data, the file that `profile -o` and `sprofile -o` write
// (docs/perf-data.md), into the counts that all reports are made from.
//
// Nothing that the file says is believed: every size and count is checked
// against the bytes that are there. A file that was cut off, at any byte, is
// read up to its last whole record.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perf_format.h"
#include "samples.h"

// One sample, as the file has it, for who wants more than counts.
struct timed_sample {
    uint64_t time;   // ns
    uint64_t period; // what it stands for: ns, or events
    uint32_t task, thread;
    uint32_t image;   // what the task ran (images.h)
    uint32_t program; // likewise (programs.h)
    uint32_t chain;   // its innermost node in samples.chains
    uint16_t cpu;
    uint8_t mode; // enum sample_mode
    bool irqs_off;
    uint8_t event; // its number among those that are read
};

// One event of a file.
struct perf_file {
    uint32_t event; // which of the file's
    // Told of each sample, in the order of the file: of one CPU by time, of
    // all in any order. May be NULL.
    void (*sample)(void *arg, const struct timed_sample *s);
    void *arg;
    // What was found:
    bool chains;   // samples have their callers
    bool has_info; // else `info` holds what the samples show, and no more
    struct sprofile_info info;
    struct sprofile_options asked;
    bool cut;             // the file ends before its writer was done,
    uint64_t cut_bytes;   // with so much of a record
    uint64_t records;     // of all events
    uint64_t samples;     // that are in the file
    uint64_t lost;        // as the records say
    uint64_t first, last; // times of the samples
    char command[256];    // that was profiled; "": not told
    char version[65];     // of the kernel, as uname -v; "": not told
};

// The events of a file: a session each.
struct perf_events {
    uint32_t count;                                  // at least 1
    char name[PERF_EVENTS_MAX][SPROFILE_EVENT_NAME]; // each its own, as a rule
};
// NULL; or, in words for the user, why there is nothing to be read.
const char *perf_read_events(struct perf_events *e, const void *bytes,
                             size_t size);
// The number of the event that is called so; `e->count`: none is.
uint32_t perf_find_event(const struct perf_events *e, const char *name);
// The names of all, with commas between them.
void perf_list_events(const struct perf_events *e, char *out, size_t size);

// Adds what the file holds of `count` of its events, each another one, to `s`.
// NULL; or, in words for the user, why there is nothing to be read. Give the
// `files` zeroed, but for the callback and the event.
const char *perf_read(struct perf_file *files, uint32_t count,
                      struct samples *s, const void *bytes, size_t size);
