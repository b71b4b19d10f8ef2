#include "user/libremote/records.h"

#include <string.h>

// Bytes needed to know the size of what is under way.
static size_t head_size(const struct records *r)
{
    return r->headed ? sizeof(struct perf_record) : sizeof(struct perf_header);
}

static void take_size(struct records *r)
{
    struct perf_header header;
    struct perf_record head;

    if (r->headed) {
        memcpy(&head, r->begin, sizeof(head));
        r->size = head.size;
        r->corrupt |= r->size < sizeof(head);
        return;
    }
    memcpy(&header, r->begin, sizeof(header));
    r->size = header.data.offset;
    r->events = (uint32_t)(header.attrs.size / sizeof(struct perf_file_attr));
    if (r->events >= REMOTE_COUNTERS)
        r->events = REMOTE_COUNTERS - 1;
    r->corrupt |= memcmp(header.magic, PERF_MAGIC, sizeof(header.magic)) != 0 ||
                  header.data.size != 0 || // a stream has no end yet
                  r->size < sizeof(header) || r->size > UINT16_MAX;
}

static uint32_t type_of(const struct records *r)
{
    struct perf_record head;

    memcpy(&head, r->begin, sizeof(head));
    return r->headed ? head.type : RECORDS_HEADER;
}

// Which of the counters counts the record that is complete.
static unsigned counter_of(const struct records *r)
{
    struct perf_sample sample;

    if (type_of(r) != PERF_RECORD_SAMPLE ||
        r->size < offsetof(struct perf_sample, ip))
        return 0;
    memcpy(&sample.id, r->begin + offsetof(struct perf_sample, id),
           sizeof(sample.id));
    return sample.id < REMOTE_COUNTERS ? (unsigned)sample.id : 0;
}

static void end_record(struct records *r)
{
    uint64_t size = r->size;

    r->counted[counter_of(r)]++;
    if (r->ended)
        r->ended(r->arg, type_of(r), r->begin, size);
    r->headed = true;
    r->size = r->used = 0;
}

// Reads up to the end of the record under way, but not beyond the piece.
// Returns the number of bytes.
static size_t step(struct records *r, const uint8_t *bytes, size_t size)
{
    size_t wanted = r->size > 0 ? (size_t)(r->size - r->used)
                                : head_size(r) - (size_t)r->used;
    size_t count = size < wanted ? size : wanted, keep = 0;

    if (r->used < sizeof(r->begin)) {
        keep = sizeof(r->begin) - (size_t)r->used;
        memcpy(r->begin + r->used, bytes, count < keep ? count : keep);
    }
    r->used += count;
    if (r->size == 0 && r->used == head_size(r))
        take_size(r);
    if (!r->corrupt && r->used == r->size)
        end_record(r);
    return count;
}

static void note_first(const struct records *r, size_t at,
                       struct records_piece *piece)
{
    if (!piece || piece->first != REMOTE_NONE || r->used > 0 || !r->headed)
        return;
    piece->first = (uint16_t)at;
    memcpy(piece->counted, r->counted, sizeof(piece->counted));
}

void records_read(struct records *r, const uint8_t *bytes, size_t size,
                  struct records_piece *piece)
{
    if (piece)
        *piece = (struct records_piece){ .first = REMOTE_NONE };
    for (size_t at = 0; at < size && !r->corrupt;) {
        note_first(r, at, piece);
        at += step(r, bytes + at, size - at);
    }
}

void records_resume(struct records *r, const uint64_t counted[REMOTE_COUNTERS])
{
    memcpy(r->counted, counted, sizeof(r->counted));
    r->headed = true;
    r->size = r->used = 0;
}
