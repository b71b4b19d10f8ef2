// Sensors: values, histograms and lists of events in memory that their owner
// writes and any task may map and read. A sensor is a file below /sensors:
//
//     page 0   struct sensor_header, written by the kernel alone
//     page 1.. the data, which the owner may spoil: readers check them
//
// A program creates the file (O_CREAT | O_RDWR), gives it a type by the ioctl
// SENSOR_CREATE, and maps the data from SENSOR_DATA on, shared and writable.
// All others map the file read-only. Posting: <strobe/sensor_post.h>.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <strobe/sensor_count.h>

#define SENSOR_MAGIC 0x534e5331u // "1SNS"
#define SENSOR_VERSION 3u

#define SENSOR_DATA 4096u // offset of the data in the file
// Most bytes of one sensor's data, and, with headers, of all that a task owns.
#define SENSOR_BYTES_MAX (4u << 20)
#define SENSOR_TRACE_BYTES_MAX ((16u << 20) + (64u << 10)) // of a trace's ring
#define SENSOR_TASK_BYTES_MAX (8u << 20)
#define SENSOR_TASK_COUNT_MAX 64u // sensors that a task may own
#define SENSOR_PATH_MAX 63u       // bytes of the path, from /sensors on
#define SENSOR_TEXT_MAX 2048u     // bytes of a description, with the NUL

enum sensor_type {
    SENSOR_NONE,
    SENSOR_SCALAR,
    SENSOR_HISTOGRAM,
    SENSOR_LIST,
    SENSOR_RING, // one writer, events of different sizes
    SENSOR_TYPES
};

// --- layouts

// 64-bit numbers are two words, the low one first: the ABI has no 64-bit
// alignment. Those that several writers add to are a sensor_count.
struct sensor_wide {
    uint32_t low, high;
};

enum sensor_scalar_kind { SENSOR_GAUGE, SENSOR_COUNTER, SENSOR_SCALAR_KINDS };

struct sensor_scalar_layout {
    uint32_t kind, bits; // 32 or 64
};

enum sensor_scale {
    SENSOR_LINEAR, // bin (value - first) / width
    SENSOR_LOG2,   // 2^width bins for each power of two, from 2^first on
    SENSOR_SCALES
};

struct sensor_axis {
    uint32_t scale, first, width, bins;
};
#define SENSOR_BINS_MAX (1u << 16) // of an axis
#define SENSOR_SUB_BINS_MAX 8u     // log2: `width` at most
#define SENSOR_LANES_MAX 64u
#define SENSOR_LAYERS_MAX 64u

// One-dimensional: y.bins is 0. Two-dimensional: a cell for each pair, counted
// by x and y. Layered: `layers` planes of x by y, at least 2, each with a cost
// (sum) and a count for a cell.
struct sensor_histogram_layout {
    uint32_t lanes;  // copies, by CPU number modulo lanes; a reader adds them
    uint32_t layers; // 0: not layered
    struct sensor_axis x, y;
};

// What `time` of a list's events is: the TSC, or, where no clock is to be read
// or the TSCs of the CPUs differ, the event's number. Both are taken after the
// number, so what follows an event has a later number.
enum sensor_clock { SENSOR_CLOCK_TSC, SENSOR_CLOCK_LOGICAL, SENSOR_CLOCKS };

struct sensor_list_layout {
    uint32_t slots;      // a power of two
    uint32_t slot_bytes; // 32, 64 or 128
    uint32_t clock;      // enum sensor_clock
};
#define SENSOR_SLOTS_MIN 4u
#define SENSOR_SLOTS_MAX (1u << 16)

struct sensor_ring_layout {
    uint32_t bytes; // a power of two
    uint32_t stops; // when it is full; 0: overwrites
    uint32_t trace; // 1: the pages of a trace, which the kernel alone writes
};
#define SENSOR_RING_MIN 4096u

struct sensor_layout {
    uint32_t type; // enum sensor_type
    union {
        struct sensor_scalar_layout scalar;
        struct sensor_histogram_layout histogram;
        struct sensor_list_layout list;
        struct sensor_ring_layout ring;
        uint32_t words[15];
    };
};

struct sensor_header {
    uint32_t magic, version, header_bytes;
    uint32_t data_bytes;
    struct sensor_layout layout;
    uint32_t owner; // task that created it; 0: the kernel
    // Nanoseconds since the start of the machine. closed_ns: 0 while it is open
    struct sensor_wide created_ns, closed_ns;
    struct sensor_wide tsc_hz;  // of the times of events
    char text[SENSOR_TEXT_MAX]; // the description, with a NUL
};

// --- data

// A lane of a histogram, at a multiple of 64 bytes. Cells follow: first the
// bins of a row (x), then the rows (y), then the layers. A cell is a
// sensor_count, in layered histograms two of them: count and cost. A scalar is
// one, too.
struct sensor_lane {
    struct sensor_count sum; // of the values (x)
    struct sensor_count under, over;
    uint32_t not_min; // ~ of the least value; 0: none yet
    uint32_t max;
    struct sensor_count cells[];
};
#define SENSOR_LANE_ALIGN 64u

// An event. `state` is written first and last: SENSOR_EVENT_BUSY(number) while
// the event is written, then SENSOR_EVENT_THERE(number); 0: none yet. The
// writer's thread is written together with it at first.
struct sensor_event {
    uint32_t state;
    uint32_t thread;
    uint16_t type;
    uint8_t cpu, bytes;      // a hint; of the payload
    struct sensor_wide time; // TSC, read after the number was taken
    uint32_t payload[];
};
#define SENSOR_EVENT_THERE(number) (((number) + 1u) << 1)
#define SENSOR_EVENT_BUSY(number) (SENSOR_EVENT_THERE(number) | 1u)

struct sensor_list {
    uint32_t next; // number of the next event
    uint32_t reserved[31];
    // slots follow: none lies across a page
};

// A ring: this page, then the records (<strobe/sensor_ring.h>). Positions are
// in units, without end.
#define SENSOR_UNIT 8u
#define SENSOR_RECORD_MAX 16384u // bytes, with its head; and of a block

struct sensor_place {
    uint32_t at;     // behind what was taken
    uint32_t number; // of the next record
};

struct sensor_ring {
    struct sensor_place taken; // the writer's: both change at once
    uint32_t published;        // all before is written
    uint32_t depth;            // writers that are under way
    uint32_t released;         // stopping: the writer's task has done with it
    uint32_t reserved[3];
};

struct sensor_record {
    uint16_t size; // bytes, with the head; the next unit begins a record
    uint16_t type; // SENSOR_PAD: no record, and of these 8 bytes only
    uint32_t number;
    struct sensor_wide time; // TSC
    uint32_t payload[];
};
#define SENSOR_PAD 0xffffu

// A ring of a trace: this, from the next page on the records of
// <strobe/trace.h> in pages of SENSOR_TRACE_PAGE bytes, which count without
// end. Page n is cleared when it is opened, and begins with the time. So a
// reader copies what it finds in a page that is opened, up to a word that is 0;
// what it has is page n if now, after the copy, begun - n is at most the number
// of pages.
//
// Events have numbers; those for which there was no room do, too. `numbers` has
// that of the first event of page n, or of the first one that its first record
// says is lost, at n modulo twice the pages: once all pages before are freed.
#define SENSOR_TRACE_PAGE 4096u
struct sensor_trace {
    uint32_t begun;     // pages that were opened, or are being opened
    uint32_t opened;    // pages that have records
    uint32_t freed;     // pages that the trace's own reader has done with, or
                        // a flight has overwritten
    uint32_t lost;      // events
    uint32_t reported;  // of these: records of losses say so
    uint32_t throttled; // of the lost ones
    uint32_t reserved[10];
    uint32_t numbers[];
};

// --- the request

struct sensor_request {
    struct sensor_layout layout;
    uint32_t text_bytes; // without a NUL
    const char *text;    // the description
};
// _IOW('S', 1, struct sensor_request)
#define SENSOR_CREATE 0x40485301u

// --- validity

static inline bool sensor_axis_valid(const struct sensor_axis *a)
{
    if (a->scale >= SENSOR_SCALES || !a->bins || a->bins > SENSOR_BINS_MAX)
        return false;
    if (a->scale == SENSOR_LINEAR)
        return a->width && a->bins <= (0xffffffffu - a->first) / a->width;
    return a->width <= SENSOR_SUB_BINS_MAX && a->first >= a->width &&
           a->first < 32 && a->bins <= (32 - a->first) << a->width;
}

// Cells of a lane; the axes are valid.
static inline uint64_t sensor_cells(const struct sensor_histogram_layout *h)
{
    uint64_t cells = h->x.bins;
    if (h->y.bins)
        cells *= h->y.bins;
    return h->layers ? cells * h->layers * 2 : cells;
}

// Bytes from one lane to the next.
static inline uint64_t
sensor_lane_bytes(const struct sensor_histogram_layout *h)
{
    uint64_t bytes = sizeof(struct sensor_lane) +
                     sensor_cells(h) * sizeof(struct sensor_count);
    return (bytes + SENSOR_LANE_ALIGN - 1) / SENSOR_LANE_ALIGN *
           SENSOR_LANE_ALIGN;
}

static inline bool
sensor_histogram_valid(const struct sensor_histogram_layout *h)
{
    if (!h->lanes || h->lanes > SENSOR_LANES_MAX || !sensor_axis_valid(&h->x))
        return false;
    if (h->y.bins && !sensor_axis_valid(&h->y))
        return false;
    return !h->layers || (h->layers >= 2 && h->layers <= SENSOR_LAYERS_MAX);
}

static inline bool sensor_power_of_two(uint32_t n)
{
    return n && !(n & (n - 1));
}

// Bytes before the pages of a trace's ring: whole pages.
static inline uint32_t sensor_trace_head(uint32_t ring_bytes)
{
    uint32_t numbers = 2 * (ring_bytes / SENSOR_TRACE_PAGE);
    uint32_t bytes = (uint32_t)sizeof(struct sensor_trace) + numbers * 4;
    return (bytes + SENSOR_TRACE_PAGE - 1) & ~(SENSOR_TRACE_PAGE - 1);
}

static inline uint32_t
sensor_ring_data_bytes(const struct sensor_ring_layout *r)
{
    if (!sensor_power_of_two(r->bytes) || r->bytes < SENSOR_RING_MIN ||
        r->bytes > SENSOR_TRACE_BYTES_MAX || r->stops > 1 || r->trace > 1)
        return 0;
    uint32_t head = r->trace ? sensor_trace_head(r->bytes) : SENSOR_DATA;
    return head + r->bytes;
}

// Bytes of the data, or 0 if the layout is not valid.
static inline uint32_t sensor_data_bytes(const struct sensor_layout *l)
{
    uint64_t bytes = 0;
    switch (l->type) {
    case SENSOR_SCALAR:
        if (l->scalar.kind < SENSOR_SCALAR_KINDS &&
            (l->scalar.bits == 32 || l->scalar.bits == 64))
            bytes = sizeof(struct sensor_count);
        break;
    case SENSOR_HISTOGRAM:
        if (sensor_histogram_valid(&l->histogram))
            bytes = sensor_lane_bytes(&l->histogram) * l->histogram.lanes;
        break;
    case SENSOR_LIST:
        if (sensor_power_of_two(l->list.slots) &&
            l->list.slots >= SENSOR_SLOTS_MIN &&
            l->list.slots <= SENSOR_SLOTS_MAX &&
            (l->list.slot_bytes == 32 || l->list.slot_bytes == 64 ||
             l->list.slot_bytes == 128) &&
            l->list.clock < SENSOR_CLOCKS)
            bytes = sizeof(struct sensor_list) +
                    (uint64_t)l->list.slots * l->list.slot_bytes;
        break;
    case SENSOR_RING:
        bytes = sensor_ring_data_bytes(&l->ring);
        break;
    default:
        break;
    }
    bool trace = l->type == SENSOR_RING && l->ring.trace;
    return bytes <= (trace ? SENSOR_TRACE_BYTES_MAX : SENSOR_BYTES_MAX)
               ? (uint32_t)bytes
               : 0;
}
