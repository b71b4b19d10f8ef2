// Reading sensors without trusting them: for the tools, in the guest and on the
// host.
//
// The memory may be a file that anybody wrote, and its owner may change any
// word at any time. The header is copied once and checked; places are computed
// from the copy alone; each word of the data is read once. All loops end: at
// most after the number of slots or cells that the layout has.
#pragma once

#include <stddef.h>

#include <strobe/sensor_post.h>

#define SENSOR_SLOT_BYTES_MAX 128u

// A copy of the header, and where the data are.
struct sensor_view {
    struct sensor_header header;
    const void *data;
    uint32_t lane_bytes; // of a histogram, from one lane to the next
};

// `file`: the whole file, `size` bytes, at a multiple of 4. Returns NULL, or in
// words why it is not a sensor; then the view must not be used.
const char *sensor_view_init(struct sensor_view *v, const void *file,
                             size_t size);
const char *sensor_type_text(uint32_t type); // "scalar", ...; "unknown"
// In words why a layout is not valid; NULL: it is.
const char *sensor_layout_problem(const struct sensor_layout *l);

uint64_t sensor_view_scalar(const struct sensor_view *v);
// Of a list or ring: the numbers taken so far, modulo 2^32.
uint32_t sensor_view_numbers(const struct sensor_view *v);

// --- histograms

struct sensor_totals {
    uint64_t count; // in bins; with `under` and `over`: all
    uint64_t sum, under, over;
    uint32_t least, most; // of all values; 0, 0: none
};

uint32_t sensor_rows(const struct sensor_view *v);   // 1: one-dimensional
uint32_t sensor_layers(const struct sensor_view *v); // 1: not layered
struct sensor_totals sensor_view_totals(const struct sensor_view *v);
// The same without the count, which is the sum of all cells: it is 0.
struct sensor_totals sensor_view_sums(const struct sensor_view *v);
// The count of a cell, summed over the lanes; its cost in a layered histogram,
// else 0, in `cost` unless it is NULL.
uint64_t sensor_view_cell(const struct sensor_view *v, uint32_t layer,
                          uint32_t row, uint32_t column, uint64_t *cost);

struct sensor_cell {
    uint64_t hits, cost;
};

// The same of all columns of a row, in `out`, at a third of the instructions.
void sensor_view_row(const struct sensor_view *v, uint32_t layer, uint32_t row,
                     struct sensor_cell *out);

// --- lists of events

// Each number below list->next is in exactly one of `read`, `lost` and
// `spoilt`, or is still to come.
struct sensor_cursor {
    uint32_t next; // the number to read
    uint64_t read;
    uint64_t lost;   // overtaken, or its writer did not finish it
    uint64_t spoilt; // not an event's content
    uint64_t jumps;  // the list's number went backwards: it is spoilt
};

// Begins with the oldest event that is there. What was overtaken before is not
// counted.
void sensor_cursor_begin(struct sensor_cursor *c, const struct sensor_view *v);
// The next event, into `out`. False: there is none now. The cursor waits at an
// event that is being written until half of the slots behind it have been
// taken, or (`over`: no writer is left) not at all; then it is lost.
bool sensor_cursor_next(struct sensor_cursor *c, const struct sensor_view *v,
                        bool over, struct sensor_event *out);

// --- rings (sensor_ring_read.c)

// Each number below ring->taken.number is in exactly one of `read` and `lost`,
// or is still to come; also in a spoilt ring, whose numbers are what it says.
struct sensor_trace_place {
    uint32_t page, offset; // of the next record
    uint32_t number;       // of the next event
    uint32_t spoilt;       // pages
    uint32_t thread;       // that runs
    uint64_t epoch;        // the time without the bits of records
    bool ended;            // the losses behind the last event are counted
};

struct sensor_ring_cursor {
    uint32_t at;   // position of the record to read
    uint32_t next; // its number, once `begun`
    bool begun;
    uint64_t read;
    uint64_t lost;   // overtaken, or there was no room, or never finished
    uint64_t spoilt; // places where no record was; the block's rest is skipped
    struct sensor_trace_place trace; // of a trace's ring, instead of `at`
};

// The most records that a ring can have.
uint32_t sensor_ring_records_max(const struct sensor_view *v);
// Begins with the oldest record that is there. What was before is not counted.
void sensor_ring_cursor_begin(struct sensor_ring_cursor *c,
                              const struct sensor_view *v);
// The next record, into `out` (SENSOR_RECORD_MAX bytes). False: there is none
// now. `over`: no writer is left, so what is not published never will be.
bool sensor_ring_cursor_next(struct sensor_ring_cursor *c,
                             const struct sensor_view *v, bool over,
                             struct sensor_record *out);

// --- descriptions (sensor_fields.c)

// A description names the types of a list's events and their fields, one a
// line, packed in this order:
//
//     #type frame 10
//     number, u32
//     cycles, u64
#define SENSOR_FIELD_NAME 32u

struct sensor_field {
    char name[SENSOR_FIELD_NAME];
    uint32_t bytes; // 1, 2, 4, 8
    bool is_signed;
};

// The place in `text` behind the line of the type, and the type's name
// (SENSOR_FIELD_NAME bytes). NULL: it is not described.
const char *sensor_find_type(const char *text, uint32_t type, char *name);
// The next field. False: there is none, or it is not understood.
bool sensor_next_field(const char **at, struct sensor_field *out);
// The value of `f` at the start of `bytes`, sign-extended.
uint64_t sensor_field_value(const struct sensor_field *f, const void *bytes);
