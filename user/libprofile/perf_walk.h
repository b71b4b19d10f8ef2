// Iterates over the records of a perf.data file. Every record returned lies
// wholly within the file, and its parts within the record. The file is not
// trusted.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perf_format.h"

// The layout of the file.
struct perf_layout {
    const uint8_t *bytes;
    size_t size;
    uint64_t data, data_end;       // the records; data_end is within the file
    bool cut;                      // the writer did not finish
    uint32_t events;               // 1 to PERF_EVENTS_MAX
    bool chains;                   // samples have a chain
    uint64_t ids[PERF_EVENTS_MAX]; // with several events: the id of each
};

// Returns NULL, or an error message for the user.
const char *perf_layout(struct perf_layout *l, const void *bytes, size_t size);

struct perf_walk {
    const struct perf_layout *layout;
    uint64_t at;
    uint64_t cut_bytes; // at the end: size of a partial record
    bool corrupt;       // at the end: the size of a record is invalid
};
struct perf_view {
    struct perf_record head;
    const uint8_t *bytes; // the whole record with its header; not aligned
};
// Reads the next record. Returns false at the end.
bool perf_next(struct perf_walk *w, struct perf_view *out);

// Returns the event that has this id, or PERF_EVENTS_MAX if none has it.
uint32_t perf_event_of(const struct perf_layout *l, uint64_t id);
// Copies the record's first `size` bytes. Returns false if it is shorter.
bool perf_get(const struct perf_view *v, void *out, size_t size);
// Reads the head of a Strobe record; its bytes follow. Returns false if it is
// another record, or truncated.
bool perf_get_strobe(const struct perf_view *v, struct perf_strobe *out);
// The time at which a record was written; 0: it has no time.
uint64_t perf_time(const struct perf_view *v);
// The string at `offset`, or NULL if it does not end within the record.
const char *perf_string(const struct perf_view *v, size_t offset);
