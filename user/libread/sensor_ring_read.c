// Reading rings (<strobe/sensor_ring.h>) that their writer may overwrite, or
// spoil, at any time. All that is read is copied first, then it is checked that
// it was not overwritten meanwhile, and only then it is believed: so what is
// spoilt is the writer's work.
#include "user/libread/sensor_read.h"

#include "lib/string.h"
#include "lib/types.h"
#include "user/libread/sensor_trace_read.h"

// Ends the search for a record in a ring that is written faster than it is
// read; more than the steps through a whole ring without one: a pad and what is
// spoilt skip the rest of a block.
#define STEPS_MAX 1024u

static const struct sensor_ring *ring(const struct sensor_view *v)
{
    return (const struct sensor_ring *)v->data;
}

static const struct sensor_ring_layout *layout(const struct sensor_view *v)
{
    return &v->header.layout.ring;
}

static u32 taken_at(const struct sensor_view *v)
{
    return __atomic_load_n(&ring(v)->taken.at, __ATOMIC_ACQUIRE);
}

static u32 published(const struct sensor_view *v)
{
    return __atomic_load_n(&ring(v)->published, __ATOMIC_ACQUIRE);
}

// The position and the number at one time: the position does not come back.
static struct sensor_place taken(const struct sensor_view *v)
{
    struct sensor_place p;
    u32 tries = 1000;
    do {
        p.at = taken_at(v);
        p.number = __atomic_load_n(&ring(v)->taken.number, __ATOMIC_ACQUIRE);
    } while (p.at != taken_at(v) && --tries);
    return p;
}

// Whether something at `at` may have been overwritten.
static bool overtaken(const struct sensor_view *v, u32 at)
{
    return taken_at(v) - at > sensor_ring_units(layout(v));
}

// The first block's begin that is not overwritten.
static u32 oldest(const struct sensor_view *v)
{
    return sensor_ring_next_block(layout(v),
                                  taken_at(v) - sensor_ring_units(layout(v)));
}

uint32_t sensor_ring_records_max(const struct sensor_view *v)
{
    return layout(v)->bytes /
           (layout(v)->trace ? sizeof(u32) : sizeof(struct sensor_record));
}

void sensor_ring_cursor_begin(struct sensor_ring_cursor *c,
                              const struct sensor_view *v)
{
    *c = (struct sensor_ring_cursor){ .begun = true };
    if (layout(v)->trace) {
        sensor_trace_begin(&c->trace, v);
        c->begun = !c->trace.page;
    } else if (layout(v)->stops) {
        c->at = READ_ONCE(ring(v)->released);
        c->begun = !c->at;
    } else if (overtaken(v, 0)) {
        c->at = oldest(v);
        c->begun = false;
    }
}

// Numbers before `number` that were not read.
static void skip_numbers(struct sensor_ring_cursor *c, u32 number)
{
    if (c->begun)
        c->lost += number - c->next;
    c->begun = true;
    c->next = number;
}

// All numbers before the last position were taken with a record or without
// room, or their writer has died.
static void count_rest(struct sensor_ring_cursor *c,
                       const struct sensor_view *v, bool over)
{
    struct sensor_place p = taken(v);
    if (!over && p.at != c->at)
        return;
    if (p.number - c->next > 0x7fffffffu && c->begun) {
        c->spoilt++;
        c->next = p.number;
    } else {
        skip_numbers(c, p.number);
    }
}

// Goes to what is not overwritten.
static void catch_up(struct sensor_ring_cursor *c, const struct sensor_view *v)
{
    u32 behind = taken_at(v) - c->at;
    if (behind > 0x7fffffffu) { // backwards
        c->spoilt++;
        c->at = taken_at(v);
    } else if (behind > sensor_ring_units(layout(v))) {
        c->at = oldest(v);
    }
}

enum found { FOUND_RECORD, FOUND_PAD, FOUND_OVERTAKEN, FOUND_SPOILT };

static u32 units_of(u32 size)
{
    return DIV_ROUND_UP(size, SENSOR_UNIT);
}

// Copies what is at c->at, before `end`.
static enum found copy(const struct sensor_ring_cursor *c,
                       const struct sensor_view *v, u32 end,
                       struct sensor_record *out)
{
    const struct sensor_record *r = sensor_ring_at(v->data, layout(v), c->at);
    u32 block = sensor_ring_block(layout(v));
    u32 left = block - (c->at & (block - 1));
    out->size = READ_ONCE(r->size);
    out->type = READ_ONCE(r->type);
    out->number = READ_ONCE(r->number);
    bool pad = out->type == SENSOR_PAD;
    bool fits = pad ? out->size == left * SENSOR_UNIT
                    : out->size >= sizeof(*out) &&
                          units_of(out->size) <= MIN(end - c->at, left);
    if (fits && !pad) {
        size_t head = offsetof(struct sensor_record, time);
        memcpy((u8 *)out + head, (const u8 *)r + head, out->size - head);
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (overtaken(v, c->at))
        return FOUND_OVERTAKEN;
    if (!fits)
        return FOUND_SPOILT;
    if (pad)
        return FOUND_PAD;
    u32 new = taken(v).number - c->next;
    return c->begun && out->number - c->next >= new ? FOUND_SPOILT
                                                    : FOUND_RECORD;
}

static bool next_of_trace(struct sensor_ring_cursor *c,
                          const struct sensor_view *v, bool over,
                          struct sensor_record *out)
{
    bool found = sensor_trace_next(&c->trace, v, over, out);
    skip_numbers(c, found ? out->number : c->trace.number);
    c->spoilt = c->trace.spoilt;
    c->next += found;
    c->read += found;
    return found;
}

bool sensor_ring_cursor_next(struct sensor_ring_cursor *c,
                             const struct sensor_view *v, bool over,
                             struct sensor_record *out)
{
    if (layout(v)->trace)
        return next_of_trace(c, v, over, out);
    for (u32 step = 0; step < STEPS_MAX; step++) {
        catch_up(c, v);
        // The oldest block's begin may be behind what is published.
        u32 end = published(v);
        if (end - c->at - 1 > 0x7ffffffeu) {
            count_rest(c, v, over);
            return false;
        }
        switch (copy(c, v, end, out)) {
        case FOUND_RECORD:
            skip_numbers(c, out->number);
            c->at += units_of(out->size);
            c->next++;
            c->read++;
            return true;
        case FOUND_PAD:
            c->at += units_of(out->size);
            break;
        case FOUND_OVERTAKEN: // catch_up() goes on
            break;
        case FOUND_SPOILT:
            c->spoilt++;
            c->at = sensor_ring_next_block(layout(v), c->at + 1);
            break;
        }
    }
    return false;
}
