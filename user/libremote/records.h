// Finds the records in a perf.data stream that comes in pieces, cut anywhere,
// and counts them: samples by their event, and all others.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/libprofile/perf_format.h"
#include "user/libremote/message.h"

// The file's part before its first record counts as a record of this type.
#define RECORDS_HEADER UINT32_MAX

struct records {
    // Called for each record that is complete. `begin`: its first bytes, as
    // many as there are in `begin` below and in the record. May be NULL.
    void (*ended)(void *arg, uint32_t type, const uint8_t *begin, size_t size);
    void *arg;

    uint8_t begin[sizeof(struct perf_header)]; // of the record under way
    uint64_t size;                             // of it; 0: not known yet
    uint64_t used;                             // bytes of it that were read
    uint64_t counted[REMOTE_COUNTERS]; // that are complete; 0: no samples
    uint32_t events;                   // of the file, at most 16
    bool headed;                       // the header is behind us
    bool corrupt;                      // these are no records
};

// What a piece holds.
struct records_piece {
    uint16_t first; // where its first record begins, or REMOTE_NONE
    uint64_t counted[REMOTE_COUNTERS]; // records that ended up to there
};

// Reads a piece of at most REMOTE_RAW_MAX bytes. `piece` may be NULL.
void records_read(struct records *r, const uint8_t *bytes, size_t size,
                  struct records_piece *piece);
// After a gap: forgets the record under way. The next piece begins with a
// record, after so many.
void records_resume(struct records *r, const uint64_t counted[REMOTE_COUNTERS]);
