// The records of a perf.data file one after the other, each whole and with its
// parts inside it. Nothing is believed.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perf_format.h"

// Where in the file what is.
struct perf_layout {
    const uint8_t *bytes;
    size_t size;
    uint64_t data, data_end;       // the records; data_end is inside the file
    bool cut;                      // the writer was not done
    uint32_t events;               // 1 to PERF_EVENTS_MAX
    bool chains;                   // samples have a chain
    uint64_t ids[PERF_EVENTS_MAX]; // of several: the id of each
};

// NULL, or, in words for the user, why it cannot be read.
const char *perf_layout(struct perf_layout *l, const void *bytes, size_t size);

struct perf_walk {
    const struct perf_layout *layout;
    uint64_t at;
    uint64_t cut_bytes; // at the end: of a record that is not whole
    bool corrupt;       // at the end: a record's size makes no sense
};
struct perf_view {
    struct perf_record head;
    const uint8_t *bytes; // of it all, the head included; not aligned
};
// The next record; false at the end.
bool perf_next(struct perf_walk *w, struct perf_view *out);

// The event of a sample's or another record's id; PERF_EVENTS_MAX: none of
// those there are.
uint32_t perf_event_of(const struct perf_layout *l, uint64_t id);
// Copies the record's first `size` bytes. False: it is shorter.
bool perf_get(const struct perf_view *v, void *out, size_t size);
// One of Strobe's own, whose bytes follow it. False: it is none, or not whole.
bool perf_get_own(const struct perf_view *v, struct perf_strobe *out);
// When a record was written, sample or other; 0: it does not say.
uint64_t perf_time(const struct perf_view *v);
// The string at `offset`, which ends inside the record; NULL: it does not.
const char *perf_string(const struct perf_view *v, size_t offset);
