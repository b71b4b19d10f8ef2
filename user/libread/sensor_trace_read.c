// Reading the ring of a trace (<strobe/sensor.h>, struct sensor_trace): as the
// records of any other ring. The kernel writes it, and overwrites it; but it
// may be a file, too, that anybody wrote: what is read is copied first, then it
// is checked that it was not overwritten meanwhile, then its size is checked.
#include "user/libread/sensor_trace_read.h"

#include <strobe/trace.h>

#include "lib/string.h"
#include "lib/types.h"

// Bounds the search for an event where there is none: more than the words of
// four pages.
#define STEPS_MAX 4096u

static const struct sensor_trace *shared(const struct sensor_view *v)
{
    return (const struct sensor_trace *)v->data;
}

static u32 load(const u32 *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static u32 pages(const struct sensor_view *v)
{
    return v->header.layout.ring.bytes / SENSOR_TRACE_PAGE;
}

// Whether page `n` may be overwritten.
static bool overtaken(const struct sensor_view *v, u32 n)
{
    return load(&shared(v)->begun) - n > pages(v);
}

static u32 number_of(const struct sensor_view *v, u32 n)
{
    return load(&shared(v)->numbers[n & (2 * pages(v) - 1)]);
}

// Goes to the begin of page `n`, which is the oldest one or freed: only of such
// a page the number is known. If it is overwritten before it is read, the
// number may be another page's; copy() finds that out before it is used.
static void go_to(struct sensor_trace_place *p, const struct sensor_view *v,
                  u32 n)
{
    p->page = n;
    p->offset = 0;
    p->number = number_of(v, n);
}

// Goes to the middle of what is there, so that it is not overwritten at once.
static void catch_up(struct sensor_trace_place *p, const struct sensor_view *v)
{
    u32 freed = load(&shared(v)->freed);
    u32 oldest = load(&shared(v)->begun) - pages(v);
    u32 n = oldest + pages(v) / 2;
    if ((s32)(freed - n) < 0)
        n = (s32)(freed - oldest) < 0 ? oldest : freed;
    go_to(p, v, n);
}

void sensor_trace_begin(struct sensor_trace_place *p,
                        const struct sensor_view *v)
{
    u32 begun = load(&shared(v)->begun);
    *p = (struct sensor_trace_place){ 0 };
    if (begun > pages(v))
        go_to(p, v, begun - pages(v));
}

// A record: its head and what follows.
struct copy {
    u32 head;
    u32 words[TRACE_WORDS_MAX - 1];
};

enum found { FOUND_RECORD, FOUND_NONE, FOUND_OVERTAKEN, FOUND_SPOILT };

static enum found copy(const struct sensor_trace_place *p,
                       const struct sensor_view *v, struct copy *out)
{
    const struct sensor_ring_layout *l = &v->header.layout.ring;
    const u8 *page = (const u8 *)v->data + sensor_trace_head(l->bytes) +
                     (p->page & (pages(v) - 1)) * SENSOR_TRACE_PAGE;
    const u32 *at = (const u32 *)(page + p->offset);
    u32 left = SENSOR_TRACE_PAGE - p->offset;
    out->head = load(at);
    u32 size = TRACE_HEAD_WORDS(out->head) * 4;
    if (size && size <= left)
        memcpy(out->words, at + 1, size - 4);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return overtaken(v, p->page)  ? FOUND_OVERTAKEN
           : !out->head           ? FOUND_NONE
           : !size || size > left ? FOUND_SPOILT
                                  : FOUND_RECORD;
}

static void take_time(struct sensor_trace_place *p, const struct copy *c)
{
    p->thread = c->words[0];
    p->epoch = ((u64)c->words[2] << 32 | c->words[1]) >> TRACE_TIME_BITS;
}

// The bytes of an event's fields: a record is filled up to words.
static u32 field_bytes(u32 type)
{
    static const u8 bytes[TRACE_POINTS] = {
#define POINT(group, name, fields, when) \
    [TRACE_##group##_##name] = sizeof(struct trace_##group##_##name),
#include <strobe/points.def>
#undef POINT
    };
    return type < TRACE_POINTS ? bytes[type] : UINT32_MAX;
}

static void take_event(struct sensor_trace_place *p, struct copy *c,
                       struct sensor_record *out)
{
    u32 type = TRACE_HEAD_TYPE(c->head);
    u32 bytes = (TRACE_HEAD_WORDS(c->head) - 1) * 4;
    u64 time = p->epoch << TRACE_TIME_BITS | TRACE_HEAD_TIME(c->head);
    bool leaves = type == TRACE_sched_switch && bytes >= 8;
    if (type == TRACE_R_CALL && bytes)
        c->words[0] -= TRACE_CALL_OFFSET;
    bytes = MIN(bytes, field_bytes(type));
    // As in the traces of files: a switch is an event of the thread that
    // leaves.
    out->payload[0] = leaves ? c->words[0] : p->thread;
    if (leaves)
        p->thread = c->words[1];
    memcpy(&out->payload[1], c->words, bytes);
    out->size = (u16)(sizeof(*out) + sizeof(u32) + bytes);
    out->type = (u16)type;
    out->number = p->number++;
    out->time = (struct sensor_wide){ (u32)time, (u32)(time >> 32) };
}

// True: `out` has an event.
static bool take(struct sensor_trace_place *p, struct copy *c,
                 struct sensor_record *out)
{
    u32 words = TRACE_HEAD_WORDS(c->head), type = TRACE_HEAD_TYPE(c->head);
    p->offset += words * 4;
    if (p->offset == SENSOR_TRACE_PAGE) {
        p->page++;
        p->offset = 0;
    }
    if (type == TRACE_R_PAD)
        return false;
    if (type != TRACE_R_TIME && type != TRACE_R_LOST) {
        take_event(p, c, out);
        return true;
    }
    if (words >= sizeof(struct trace_time) / 4)
        take_time(p, c);
    if (type == TRACE_R_LOST && words >= sizeof(struct trace_lost) / 4)
        p->number += c->words[3];
    return false;
}

// At the end of a trace that has ended: what no record says.
static void take_last_losses(struct sensor_trace_place *p,
                             const struct sensor_view *v)
{
    if (!p->ended)
        p->number += load(&shared(v)->lost) - load(&shared(v)->reported);
    p->ended = true;
}

// The kernel has begun what it has opened; a file may say anything.
static bool is_behind_all(const struct sensor_trace_place *p,
                          const struct sensor_view *v)
{
    return (s32)(load(&shared(v)->opened) - p->page) <= 0 ||
           (s32)(load(&shared(v)->begun) - p->page) <= 0;
}

bool sensor_trace_next(struct sensor_trace_place *p,
                       const struct sensor_view *v, bool over,
                       struct sensor_record *out)
{
    struct copy c;
    for (u32 step = 0; step < STEPS_MAX; step++) {
        if (is_behind_all(p, v)) {
            if (over)
                take_last_losses(p, v);
            return false;
        }
        switch (copy(p, v, &c)) {
        case FOUND_RECORD:
            if (take(p, &c, out))
                return true;
            break;
        case FOUND_NONE:
            if (over && load(&shared(v)->opened) - p->page == 1)
                take_last_losses(p, v);
            return false;
        case FOUND_OVERTAKEN:
            catch_up(p, v);
            break;
        case FOUND_SPOILT:
            p->spoilt++;
            p->page++;
            p->offset = 0;
            break;
        }
    }
    return false;
}

uint32_t sensor_trace_numbers(const struct sensor_view *v)
{
    union {
        struct sensor_record record;
        u32 words[SENSOR_TRACE_RECORD_MAX / sizeof(u32)];
    } out;
    struct sensor_trace_place p = { 0 };
    u32 most = v->header.layout.ring.bytes / sizeof(u32);
    go_to(&p, v, load(&shared(v)->freed));
    while (most-- && sensor_trace_next(&p, v, true, &out.record))
        ;
    return p.number;
}
