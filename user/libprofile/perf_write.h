// Writes a profile session as perf.data (docs/perf-data.md), record by record
// as the samples arrive. A file that is truncated at any byte can be repaired
// afterwards (perf_repair.h) and keeps all whole records.
//
// The writer observes the events' samples, and writes each one that is counted.
//
//     problem = perf_write_begin(&w, path, &facts, events, count);
//     samples_add_stream(events[i].samples, bytes, n);
//     perf_write_flush(&w);
//     perf_write_info(&w, i, &info);
//     perf_write_totals(&w, i, &info);
//     problem = perf_write_end(&w);
//
// With several events each has its own session and stream. Every stream reports
// the changes of tasks; those of the first stream are written.
#pragma once

#include "known_threads.h"
#include "mapping.h"
#include "output.h"
#include "perf_features.h"
#include "samples.h"

struct perf_writer {
    struct output out; // closed: no file, and nothing is written
    uint64_t time;     // of the last record, ns
    struct perf_clock {
        uint64_t tsc_hz, scale;         // scale: ns << 32 a TSC cycle
        uint64_t second_tsc, second_ns; // TSC and ns of a full second
    } clock;
    struct mapping vdso; // size 0 until it is read
    uint32_t count;
    struct perf_stream {
        struct perf_writer *writer;
        uint64_t id; // of the event
        struct samples *samples;
        bool chains;   // samples are written with call chains
        uint64_t lost; // lost samples that were written as records
        struct known_threads named;
    } streams[PERF_EVENTS_MAX];
};

// Creates the file, and writes the file-wide records and the programs that the
// first event's samples have. There are 1 to PERF_EVENTS_MAX events. Returns
// NULL, or an error message; then w->out is closed.
const char *perf_write_begin(struct perf_writer *w, const char *path,
                             const struct perf_environment *environment,
                             const struct perf_event *events, uint32_t count);
// Writes all samples counted so far to the file.
void perf_write_flush(struct perf_writer *w);
// Writes the event's totals so far.
void perf_write_info(struct perf_writer *w, uint32_t event,
                     const struct sprofile_info *info);
// Writes the event's final totals.
void perf_write_totals(struct perf_writer *w, uint32_t event,
                       const struct sprofile_info *info);
// Seals and closes the file. Returns NULL, or the message of the first error
// since perf_write_begin.
const char *perf_write_end(struct perf_writer *w);
