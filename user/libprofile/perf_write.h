// Writes a profile session as perf.data (docs/perf-data.md), record by record
// as they come: a file that is cut off at any byte can be repaired afterwards
// (perf_repair.h) and has all that was whole.
//
// It observes the events' samples: what they count it writes.
//
//     problem = perf_write_begin(&w, path, &facts, events, count);
//     samples_add_stream(events[i].samples, bytes, n);
//     perf_write_flush(&w);
//     perf_write_info(&w, i, &info);
//     perf_write_totals(&w, i, &info);
//     problem = perf_write_end(&w);
//
// Several events are several sessions, each with its own stream. What becomes
// of tasks all of them tell; that of the first is written.
#pragma once

#include "known_threads.h"
#include "mapping.h"
#include "output.h"
#include "perf_features.h"
#include "samples.h"

struct perf_writer {
    struct output out; // closed: there is none, and nothing is written
    uint64_t time;     // of the last record, ns
    struct perf_clock {
        uint64_t tsc_hz, scale;         // scale: ns << 32 a TSC cycle
        uint64_t second_tsc, second_ns; // where some second begins
    } clock;
    struct mapping vdso; // once it was read; else its size is 0
    uint32_t count;
    struct perf_stream {
        struct perf_writer *writer;
        uint64_t id; // of the event
        struct samples *samples;
        bool chains;   // samples are written with their callers
        uint64_t lost; // samples that the records tell of
        struct known_threads named;
    } streams[PERF_EVENTS_MAX];
};

// Creates the file and writes what holds for all of it, and the programs that
// the first event's samples know. 1 to PERF_EVENTS_MAX events. NULL, or what
// went wrong; then w->out is closed.
const char *perf_write_begin(struct perf_writer *w, const char *path,
                             const struct perf_facts *facts,
                             const struct perf_event *events, uint32_t count);
// What was counted until now is in the file when this returns.
void perf_write_flush(struct perf_writer *w);
// Its totals so far.
void perf_write_info(struct perf_writer *w, uint32_t event,
                     const struct sprofile_info *info);
// Its last totals.
void perf_write_totals(struct perf_writer *w, uint32_t event,
                       const struct sprofile_info *info);
// Seals and closes the file. NULL, or what went wrong, now or before.
const char *perf_write_end(struct perf_writer *w);
