// A sensor as text, for read(): `cat` shows what it is and its present value.
//
// The header is the kernel's. The data are the owner's, who may write anything
// at any time: each word is read once, any value of it is printed, and places
// are computed from the header alone. No number lies across two pages.

#include <strobe/sensor_post.h>

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/thread.h"
#include "kernel/sensor/kernel_sensor.h"
#include "kernel/sensor/sensor.h"

#include "arch/mmu.h"

#define EVENTS_SHOWN 16u

const char *sensor_type_name(const struct sensor *s)
{
    static const char *const names[SENSOR_TYPES] = {
        [SENSOR_NONE] = "",
        [SENSOR_SCALAR] = "scalar",
        [SENSOR_HISTOGRAM] = "histogram",
        [SENSOR_LIST] = "list",
        [SENSOR_RING] = "ring",
    };
    if (s->kernel)
        return names[kernel_sensor_type(s->kernel)];
    return names[READ_ONCE(s->type)];
}

// --- the data ---------------------------------------------------------------

struct view {
    struct chain *text;
    struct tmpfs_node *file;
    const struct sensor_header *header;
    bool whole; // the data are mapped behind the header
};

static const void *at(const struct view *v, u32 offset)
{
    u32 place = SENSOR_DATA + offset;
    assert(offset < v->header->data_bytes);
    if (v->whole)
        return (const u8 *)v->header + place;
    spin_lock(&v->file->v.lock);
    struct frame *f = pagetree_get(&v->file->file, place >> PAGE_SHIFT);
    spin_unlock(&v->file->v.lock);
    return (const u8 *)frame_va(f) + place % PAGE_SIZE;
}

static u64 number_at(const struct view *v, u32 offset)
{
    return sensor_count_read(at(v, offset));
}

static u32 word_at(const struct view *v, u32 offset)
{
    return READ_ONCE(*(const u32 *)at(v, offset));
}

// --- histograms -------------------------------------------------------------

static u32 cell_offset(u32 cell)
{
    return offsetof(struct sensor_lane, cells) +
           cell * sizeof(struct sensor_count);
}

// The sum over all lanes of the number at an offset of a lane.
static u64 total(const struct view *v, u32 offset)
{
    const struct sensor_histogram_layout *h = &v->header->layout.histogram;
    u64 sum = 0;
    for (u32 i = 0; i < h->lanes; i++)
        sum += number_at(v, i * (u32)sensor_lane_bytes(h) + offset);
    return sum;
}

static u32 highest(const struct view *v, u32 offset)
{
    const struct sensor_histogram_layout *h = &v->header->layout.histogram;
    u32 max = 0;
    for (u32 i = 0; i < h->lanes; i++)
        max = MAX(max, word_at(v, i * (u32)sensor_lane_bytes(h) + offset));
    return max;
}

static void show_cell(const struct view *v, u32 layer, u32 row, u32 column)
{
    const struct sensor_histogram_layout *h = &v->header->layout.histogram;
    u32 rows = MAX(h->y.bins, 1u);
    u32 cell = (layer * rows + row) * h->x.bins + column;
    u32 offset = cell_offset(h->layers ? 2 * cell : cell);
    u64 count = total(v, offset);
    if (!count)
        return;
    if (h->layers)
        chain_printf(v->text, "layer %u ", layer);
    if (h->y.bins)
        chain_printf(v->text, "y %u ", sensor_bin_start(&h->y, row));
    chain_printf(v->text, "x %u: %llu", sensor_bin_start(&h->x, column), count);
    if (h->layers)
        chain_printf(v->text, " cost %llu",
                     total(v, offset + sizeof(struct sensor_count)));
    chain_append(v->text, "\n", 1);
}

static void show_histogram(const struct view *v)
{
    const struct sensor_histogram_layout *h = &v->header->layout.histogram;
    u32 not_min = highest(v, offsetof(struct sensor_lane, not_min));
    chain_printf(
        v->text, "sum %llu, least %u, most %u, under %llu, over %llu\n",
        total(v, offsetof(struct sensor_lane, sum)), not_min ? ~not_min : 0,
        highest(v, offsetof(struct sensor_lane, max)),
        total(v, offsetof(struct sensor_lane, under)),
        total(v, offsetof(struct sensor_lane, over)));
    for (u32 layer = 0; layer < MAX(h->layers, 1u); layer++) {
        for (u32 row = 0; row < MAX(h->y.bins, 1u); row++) {
            if (signal_fatal() || v->text->error)
                return;
            for (u32 column = 0; column < h->x.bins; column++)
                show_cell(v, layer, row, column);
        }
    }
}

// --- lists ------------------------------------------------------------------

static void show_event(const struct view *v, u32 number)
{
    const struct sensor_list_layout *l = &v->header->layout.list;
    u32 event[128 / sizeof(u32)] = { 0 };
    const struct sensor_event *e = (const void *)event;
    u32 slot = sizeof(struct sensor_list) + number % l->slots * l->slot_bytes;
    u32 there = SENSOR_EVENT_THERE(number);
    for (u32 i = 0; i < l->slot_bytes / sizeof(u32); i++)
        event[i] = word_at(v, slot + i * sizeof(u32));
    if (e->state != there || word_at(v, slot) != there)
        chain_printf(v->text, "%u: not there\n", number);
    else if (e->bytes > l->slot_bytes - sizeof(*e))
        chain_printf(v->text, "%u: spoilt\n", number);
    else {
        chain_printf(v->text, "%u: time %llu, type %u, CPU %u, thread %u",
                     number, sensor_wide_read(&e->time), e->type, e->cpu,
                     e->thread);
        for (u32 i = 0; i < e->bytes / sizeof(u32); i++)
            chain_printf(v->text, " %08x", e->payload[i]);
        chain_append(v->text, "\n", 1);
    }
}

static void show_list(const struct view *v)
{
    const struct sensor_list_layout *l = &v->header->layout.list;
    u32 next = word_at(v, offsetof(struct sensor_list, next));
    u32 count = MIN(next, MIN(l->slots, EVENTS_SHOWN));
    chain_printf(v->text, "%u events posted\n", next);
    for (u32 i = 0; i < count; i++)
        show_event(v, next - count + i);
}

// --- rings ------------------------------------------------------------------

#define RECORD_WORDS 4u // of a payload that are shown

struct walk {
    const struct view *view;
    u32 at, end; // positions in units
};

// The next record: its head and first words, in `words`. False: none, or none
// that is believed.
static bool next_record(struct walk *w, u32 *words)
{
    const struct sensor_ring_layout *l = &w->view->header->layout.ring;
    const struct sensor_record *r = (const void *)words;
    u32 block = sensor_ring_block(l);
    while (w->at != w->end) {
        u32 unit = w->at & (sensor_ring_units(l) - 1);
        u32 room = MIN(w->end - w->at, block - (w->at & (block - 1)));
        words[0] = word_at(w->view, SENSOR_DATA + unit * SENSOR_UNIT);
        u32 units = DIV_ROUND_UP(r->size, SENSOR_UNIT);
        bool pad = r->type == SENSOR_PAD;
        if (!units || units > room || (!pad && r->size < sizeof(*r)))
            return false;
        w->at += units;
        if (pad)
            continue;
        u32 count =
            MIN(units * SENSOR_UNIT, sizeof(*r) + RECORD_WORDS * sizeof(u32));
        for (u32 i = 1; i < count / sizeof(u32); i++)
            words[i] = word_at(w->view, SENSOR_DATA + unit * SENSOR_UNIT +
                                            i * sizeof(u32));
        return true;
    }
    return false;
}

// The records of the last block that has some.
static void show_ring(const struct view *v)
{
    u32 words[sizeof(struct sensor_record) / sizeof(u32) + RECORD_WORDS] = {};
    const struct sensor_record *r = (const void *)words;
    const struct sensor_ring_layout *l = &v->header->layout.ring;
    u32 end = word_at(v, offsetof(struct sensor_ring, published));
    u32 block = sensor_ring_block(l), begin = (end - 1) & ~(block - 1);
    struct walk w = { v, begin, end };
    u32 count = 0;
    chain_printf(v->text, "%u records, with those that were lost\n",
                 word_at(v, offsetof(struct sensor_ring, taken.number)));
    if (!end)
        return;
    while (next_record(&w, words))
        count++;
    w.at = begin;
    for (u32 i = 0; next_record(&w, words); i++) {
        if (i + EVENTS_SHOWN < count)
            continue;
        chain_printf(v->text, "%u: time %llu, type %u", r->number,
                     sensor_wide_read(&r->time), r->type);
        u32 bytes = r->size - sizeof(*r);
        for (u32 j = 0; j < MIN(bytes / sizeof(u32), RECORD_WORDS); j++)
            chain_printf(v->text, " %08x", r->payload[j]);
        chain_append(v->text, "\n", 1);
    }
    u32 taken = word_at(v, offsetof(struct sensor_ring, taken.at));
    if (w.at != end || taken - begin > sensor_ring_units(l))
        chain_printf(v->text, "overtaken, or spoilt\n");
}

static void show_trace(const struct view *v)
{
    chain_printf(v->text,
                 "%u pages of a trace opened, %u freed; %u events lost\n",
                 word_at(v, offsetof(struct sensor_trace, opened)),
                 word_at(v, offsetof(struct sensor_trace, freed)),
                 word_at(v, offsetof(struct sensor_trace, lost)));
}

static void show_value(const struct view *v)
{
    const struct sensor_layout *l = &v->header->layout;
    switch (l->type) {
    case SENSOR_SCALAR:
        if (l->scalar.bits == 32)
            chain_printf(v->text, "%u\n", (u32)number_at(v, 0));
        else
            chain_printf(v->text, "%llu\n", number_at(v, 0));
        break;
    case SENSOR_HISTOGRAM:
        show_histogram(v);
        break;
    case SENSOR_LIST:
        show_list(v);
        break;
    case SENSOR_RING:
        if (l->ring.trace)
            show_trace(v);
        else
            show_ring(v);
        break;
    }
}

int sensor_text(struct chain *text, void *sensor)
{
    struct sensor *s = sensor;
    const struct sensor_header *h =
        __atomic_load_n(&s->header, __ATOMIC_ACQUIRE);
    struct view v = { text, tmpfs_node(s->vnode), h,
                      s->kernel || READ_ONCE(s->traced) };
    if (!v.header) {
        chain_printf(text, "a sensor without a type\n");
        return 0;
    }
    chain_printf(text, "%s, %s, of task %u\n%s\n", sensor_type_name(s),
                 sensor_state(s), s->owner_id, v.header->text);
    show_value(&v);
    return 0;
}
