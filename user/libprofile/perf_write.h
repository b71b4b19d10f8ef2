// Writes a profile session as perf.data (docs/perf-data.md), record by record
// as they come: a file that is cut off at any byte can be repaired afterwards
// (perf_repair.h) and has all that was whole.
//
// The caller gives the stream to `samples` first, which knows the programs and
// their images:
//
//     problem = perf_write_begin(&w, path, &facts, &options, &info, &samples);
//     samples_add_stream(&samples, bytes, n);
//     perf_write_stream(&w, bytes, n);
//     perf_write_info(&w, &info);
//     problem = perf_write_end(&w, &info);
#pragma once

#include <stdio.h>

#include "perf_features.h"
#include "samples.h"

struct perf_writer {
    FILE *file; // NULL: there is none, and nothing is written
    struct samples *samples;
    struct stream_reader reader;
    uint64_t tsc_hz, time; // of the last record, ns
    uint64_t lost;         // samples that the records tell of
    struct perf_known {
        uint32_t thread, program; // the thread's; its number plus 1, 0: none
    } * known;                    // threads that have a name; a hash table
    uint32_t known_count, known_room;
};

// Creates the file and writes what holds for all of it, and the programs that
// samples->programs has. NULL, or what went wrong; then w->file is NULL.
const char *perf_write_begin(struct perf_writer *w, const char *path,
                             const struct perf_facts *facts,
                             const struct sprofile_options *asked,
                             const struct sprofile_info *info,
                             struct samples *samples);
// A piece of the stream, of whole records. They are in the file when this
// returns.
void perf_write_stream(struct perf_writer *w, const void *bytes, size_t size);
// The totals so far.
void perf_write_info(struct perf_writer *w, const struct sprofile_info *info);
// The last totals; seals and closes the file. NULL, or what went wrong, now or
// before.
const char *perf_write_end(struct perf_writer *w,
                           const struct sprofile_info *info);
