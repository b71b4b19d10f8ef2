// Reads perf.data, the file that `profile -o` and `sprofile -o` write
// (docs/perf-data.md), into the counts that all reports are made from.
//
// The file is not trusted: every size and count is checked against the file's
// length. A file that was truncated at any byte is read up to its last whole
// record.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perf_format.h"
#include "samples.h"

// One sample as the file has it, for callers that need more than counts.
struct timed_sample {
    uint64_t time;   // ns
    uint64_t period; // ns, or events; see shares_divide
    uint32_t task, thread;
    uint32_t image;   // what the task ran (images.h)
    uint32_t program; // index of its program (programs.h)
    uint32_t chain;   // its innermost node in samples.chains
    uint16_t cpu;
    uint8_t mode; // enum sample_mode
    bool irqs_off;
    uint8_t event;  // its index among the events that are read
    uint32_t count; // index in samples.counts, or SAMPLES_UNCOUNTED
};

// One event of a file.
struct perf_file {
    uint32_t event; // event number in the file
    // Called for each sample in the order of the file: samples of one CPU are
    // ordered by time, those of several CPUs are not. May be NULL.
    void (*sample)(void *arg, const struct timed_sample *s);
    void *arg;
    // Output:
    bool chains;   // samples have call chains
    bool has_info; // false: `info` is derived from the samples alone
    struct sprofile_info info;
    struct sprofile_options asked;
    bool cut;             // the file ends before its writer was done
    uint64_t cut_bytes;   // of a partial record at the end
    uint64_t records;     // of all events
    uint64_t samples;     // in the file
    uint64_t lost;        // as the records report
    uint64_t first, last; // times of the samples
    struct perf_date date;
    char command[256]; // that was profiled; "": unknown
    char version[65];  // of the kernel, as uname -v; "": unknown
    bool is_remote;    // it came by `strobe remote`, thus:
    struct perf_remote remote;
};

// The events of a file, one session each.
struct perf_events {
    uint32_t count;                                  // at least 1
    char name[PERF_EVENTS_MAX][SPROFILE_EVENT_NAME]; // unique as a rule
};
// Returns NULL, or an error message for the user.
const char *perf_read_events(struct perf_events *e, const void *bytes,
                             size_t size);
// Returns the number of the event with this name, or `e->count` if none has it.
uint32_t perf_find_event(const struct perf_events *e, const char *name);
// Lists the names of all events, separated by commas.
void perf_list_events(const struct perf_events *e, char *out, size_t size);

// Adds the samples of `count` different events of the file to `s`. `files` is
// zeroed by the caller except for `event` and `sample`. Returns NULL, or an
// error message for the user.
const char *perf_read(struct perf_file *files, uint32_t count,
                      struct samples *s, const void *bytes, size_t size);
