// Posting into sensors, for the kernel and for programs: no call, no lock, no
// waiting. Any context, signal handlers, interrupts and NMIs included.
//
// Any number of writers, in any number of tasks, post at once (rings: one).
// Each change is a locked instruction, so none is lost, also if a writer is
// killed between two (<strobe/sensor_count.h>). A reader may see a value of
// which the sum, or the extremes, are not counted yet.
#pragma once

#include <stddef.h>

#include <strobe/sensor.h>
#include <strobe/sensor_ring.h>

// A plain 64-bit number, as in headers and events.
static inline uint64_t sensor_wide_read(const struct sensor_wide *w)
{
    uint32_t low = __atomic_load_n(&w->low, __ATOMIC_RELAXED);
    return (uint64_t)__atomic_load_n(&w->high, __ATOMIC_RELAXED) << 32 | low;
}

// --- scalars

static inline void sensor_scalar_set(struct sensor_count *c, uint64_t value)
{
    sensor_count_set(c, value);
}

static inline void sensor_scalar_add(struct sensor_count *c, uint32_t n)
{
    sensor_count_add(c, n);
}

static inline void sensor_raise(uint32_t *max, uint32_t value)
{
    uint32_t now = __atomic_load_n(max, __ATOMIC_RELAXED);
    while (__builtin_expect(value > now, 0) &&
           !__atomic_compare_exchange_n(max, &now, value, 1, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
        ;
}

// 32 bits.
static inline void sensor_scalar_max(struct sensor_count *c, uint32_t value)
{
    sensor_raise(&c->low, value);
}

// --- histograms

#define SENSOR_BIN_UNDER 0xfffffffeu
#define SENSOR_BIN_OVER 0xffffffffu

// The bin of a value; `a` is valid.
static inline uint32_t sensor_bin(const struct sensor_axis *a, uint32_t value)
{
    uint32_t bin;
    if (a->scale == SENSOR_LINEAR) {
        if (value < a->first)
            return SENSOR_BIN_UNDER;
        bin = value - a->first;
        if (a->width != 1)
            bin /= a->width;
    } else {
        if (!(value >> a->first))
            return SENSOR_BIN_UNDER;
        uint32_t power = 31u - (uint32_t)__builtin_clz(value);
        bin = ((power - a->first) << a->width) +
              ((value >> (power - a->width)) & ((1u << a->width) - 1));
    }
    return bin < a->bins ? bin : SENSOR_BIN_OVER;
}

// The least value of a bin.
static inline uint32_t sensor_bin_start(const struct sensor_axis *a,
                                        uint32_t bin)
{
    if (a->scale == SENSOR_LINEAR)
        return a->first + bin * a->width;
    uint32_t power = a->first + (bin >> a->width);
    uint32_t sub = bin & ((1u << a->width) - 1);
    return ((1u << a->width) + sub) << (power - a->width);
}

static inline struct sensor_lane *
sensor_lane_of(void *data, const struct sensor_histogram_layout *h,
               uint32_t lane)
{
    return (struct sensor_lane *)((char *)data +
                                  lane % h->lanes *
                                      (uint32_t)sensor_lane_bytes(h));
}

// Counts `value` in one dimension, with `row` (a bin of y) in two. `layout` is
// the caller's valid copy, not the one in memory that others write.
static inline void sensor_histogram_row(struct sensor_lane *lane,
                                        const struct sensor_histogram_layout *h,
                                        uint32_t row, uint32_t value)
{
    uint32_t bin = sensor_bin(&h->x, value);
    struct sensor_count *cell = bin == SENSOR_BIN_UNDER ? &lane->under
                                : bin == SENSOR_BIN_OVER
                                    ? &lane->over
                                    : &lane->cells[row + bin];
    sensor_count_add(cell, 1);
    sensor_count_add(&lane->sum, value);
    sensor_raise(&lane->max, value);
    sensor_raise(&lane->not_min, ~value);
}

static inline void sensor_histogram_add(void *data,
                                        const struct sensor_histogram_layout *h,
                                        uint32_t lane, uint32_t value)
{
    sensor_histogram_row(sensor_lane_of(data, h, lane), h, 0, value);
}

// In two dimensions; a `y` outside its axis counts as under or over.
static inline void
sensor_histogram_add_2d(void *data, const struct sensor_histogram_layout *h,
                        uint32_t lane, uint32_t value, uint32_t y)
{
    struct sensor_lane *l = sensor_lane_of(data, h, lane);
    uint32_t row = sensor_bin(&h->y, y);
    if (row < h->y.bins)
        sensor_histogram_row(l, h, row * h->x.bins, value);
    else
        sensor_count_add(row == SENSOR_BIN_UNDER ? &l->under : &l->over, 1);
}

// In a layered histogram: a cell's count, and its cost.
static inline void sensor_layer_add(void *data,
                                    const struct sensor_histogram_layout *h,
                                    uint32_t lane, uint32_t layer, uint32_t x,
                                    uint32_t y, uint32_t cost)
{
    struct sensor_lane *l = sensor_lane_of(data, h, lane);
    uint32_t column = sensor_bin(&h->x, x);
    uint32_t row = h->y.bins ? sensor_bin(&h->y, y) : 0;
    uint32_t rows = h->y.bins ? h->y.bins : 1;
    sensor_count_add(&l->sum, cost);
    if (column >= h->x.bins || row >= rows || layer >= h->layers) {
        sensor_count_add(column == SENSOR_BIN_UNDER || row == SENSOR_BIN_UNDER
                             ? &l->under
                             : &l->over,
                         1);
        return;
    }
    struct sensor_count *cell =
        &l->cells[((layer * rows + row) * h->x.bins + column) * 2];
    sensor_count_add(&cell[0], 1);
    sensor_count_add(&cell[1], cost);
}

// --- lists of events

static inline struct sensor_event *
sensor_slot(const void *data, const struct sensor_list_layout *l,
            uint32_t number)
{
    return (struct sensor_event *)((char *)data + sizeof(struct sensor_list) +
                                   (number & (l->slots - 1)) * l->slot_bytes);
}

// Posts an event; bytes <= slot_bytes - sizeof(struct sensor_event). Returns
// its number.
//
// The writer owns the slot from its change of `state` to busy to that to there.
// It does not take a slot that another writer owns, or that has a later event
// already: the event is then lost, and a reader finds that no slot has its
// number. A slot whose owner was killed loses an event in each round, until a
// writer takes it over: that which finds after two rounds that `is_dead`
// (NULL: it cannot know) says so of the owner's thread. A writer that is alive
// never loses its slot.
static inline uint32_t sensor_post_unless(void *data,
                                          const struct sensor_list_layout *l,
                                          uint32_t type, uint32_t cpu,
                                          uint32_t thread, const void *payload,
                                          uint32_t bytes,
                                          bool (*is_dead)(uint32_t thread))
{
    struct sensor_list *list = (struct sensor_list *)data;
    uint32_t n = __atomic_fetch_add(&list->next, 1, __ATOMIC_SEQ_CST);
    struct sensor_event *e = sensor_slot(data, l, n);
    // Slots are aligned: state and thread change as the words of a count do.
    struct sensor_count *owner = (struct sensor_count *)(void *)&e->state;
    struct sensor_count before = sensor_count_halves_(owner);
    struct sensor_count mine = { SENSOR_EVENT_BUSY(n), thread };
    uint32_t behind = mine.low - before.low;
    // Not later: a later state differs by less than half the range.
    if (behind > 0x7fffffffu)
        return n;
    if (__builtin_expect(before.low & 1, 0) &&
        (!is_dead || behind < 4 * l->slots || !is_dead(before.high)))
        return n;
    if (!sensor_count_change(owner, &before, mine))
        return n;
    e->type = (uint16_t)type;
    e->cpu = (uint8_t)cpu;
    e->bytes = (uint8_t)bytes;
    if (l->clock == SENSOR_CLOCK_LOGICAL)
        e->time = (struct sensor_wide){ n, 0 };
    else
        sensor_read_time(&e->time);
    sensor_copy(e->payload, payload, bytes);
    __atomic_store_n(&e->state, SENSOR_EVENT_THERE(n), __ATOMIC_RELEASE);
    return n;
}

static inline uint32_t sensor_post(void *data,
                                   const struct sensor_list_layout *l,
                                   uint32_t type, uint32_t cpu, uint32_t thread,
                                   const void *payload, uint32_t bytes)
{
    return sensor_post_unless(data, l, type, cpu, thread, payload, bytes, NULL);
}

enum sensor_seen {
    SENSOR_SEEN_EVENT,
    SENSOR_SEEN_PENDING, // not written yet, or its writer has died
    SENSOR_SEEN_LOST,    // overtaken, or never written
};

// Copies event `number`, which is below list->next, to `out` (slot_bytes).
static inline enum sensor_seen sensor_see(const void *data,
                                          const struct sensor_list_layout *l,
                                          uint32_t number, void *out)
{
    const struct sensor_event *e = sensor_slot(data, l, number);
    uint32_t there = SENSOR_EVENT_THERE(number);
    uint32_t state = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);
    if (state == there) {
        __builtin_memcpy(out, e, l->slot_bytes);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        state = __atomic_load_n(&e->state, __ATOMIC_RELAXED);
        return state == there ? SENSOR_SEEN_EVENT : SENSOR_SEEN_LOST;
    }
    const struct sensor_list *list = (const struct sensor_list *)data;
    uint32_t next = __atomic_load_n(&list->next, __ATOMIC_ACQUIRE);
    // A slot's next event has taken its number: this one cannot come any more,
    // unless its writer has the slot.
    if (state - there < 0x80000000u && state != SENSOR_EVENT_BUSY(number))
        return SENSOR_SEEN_LOST;
    return next - number > l->slots ? SENSOR_SEEN_LOST : SENSOR_SEEN_PENDING;
}
