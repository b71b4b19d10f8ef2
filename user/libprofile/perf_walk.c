#include "perf_walk.h"

#include <string.h>

static bool inside(uint64_t whole, uint64_t offset, uint64_t size)
{
    return offset <= whole && size <= whole - offset;
}

static const char unsupported_layout[] =
    "its events are not described as Strobe does it";

// Reads an event's attributes. The id of a single event is not used. The ids
// lie before the records.
static const char *take_attr(struct perf_layout *l, uint64_t offset,
                             uint32_t event)
{
    struct perf_file_attr a;

    memcpy(&a, l->bytes + offset, sizeof(a));
    bool chains = a.attr.sample_type & PERF_SAMPLE_CALLCHAIN;
    if ((a.attr.sample_type & ~(uint64_t)PERF_SAMPLE_CALLCHAIN) !=
        PERF_SAMPLE_OURS)
        return "its samples have other fields than Strobe's: it was written "
               "by another program; read it with perf";
    if (event == 0)
        l->chains = chains;
    if (l->events == 1)
        return NULL;
    if (chains != l->chains || a.ids.size != sizeof(l->ids[0]) ||
        !inside(l->data, a.ids.offset, a.ids.size))
        return unsupported_layout;
    memcpy(&l->ids[event], l->bytes + a.ids.offset, sizeof(l->ids[0]));
    return NULL;
}

static const char *take_attrs(struct perf_layout *l,
                              const struct perf_header *h)
{
    const size_t size = sizeof(struct perf_file_attr);

    if (h->attrs.size < size || h->attr_size != size ||
        h->attrs.size / size > PERF_EVENTS_MAX ||
        !inside(l->data, h->attrs.offset, h->attrs.size))
        return unsupported_layout;
    l->events = (uint32_t)(h->attrs.size / size);
    for (uint32_t i = 0; i < l->events; i++) {
        const char *problem = take_attr(l, h->attrs.offset + i * size, i);
        if (problem)
            return problem;
    }
    return NULL;
}

const char *perf_layout(struct perf_layout *l, const void *bytes, size_t size)
{
    struct perf_header h;

    *l = (struct perf_layout){ .bytes = bytes, .size = size };
    if (size < sizeof(h.magic) ||
        memcmp(bytes, PERF_MAGIC, sizeof(h.magic)) != 0)
        return "not a perf.data file: profile -o and sprofile -o write "
               "one";
    if (size < sizeof(h))
        return "truncated within its header: nothing can be read";
    memcpy(&h, bytes, sizeof(h));
    if (h.size != sizeof(h) || h.data.offset < sizeof(h))
        return "its header is corrupt";
    if (h.data.offset > size)
        return "it was cut off before its first record";
    l->data = h.data.offset;
    const char *problem = take_attrs(l, &h);
    if (problem)
        return problem;
    l->cut = h.data.size == 0 || h.data.size > size - h.data.offset;
    l->data_end = l->cut ? size : h.data.offset + h.data.size;
    return NULL;
}

bool perf_next(struct perf_walk *w, struct perf_view *out)
{
    if (w->at == 0)
        w->at = w->layout->data;
    uint64_t left = w->layout->data_end - w->at;
    if (left < sizeof(out->head)) {
        w->cut_bytes = left;
        return false;
    }
    memcpy(&out->head, w->layout->bytes + w->at, sizeof(out->head));
    if (out->head.size < sizeof(out->head) || out->head.size % 8 != 0) {
        w->corrupt = true;
        return false;
    }
    if (out->head.size > left) {
        w->cut_bytes = left;
        return false;
    }
    out->bytes = w->layout->bytes + w->at;
    w->at += out->head.size;
    return true;
}

uint32_t perf_event_of(const struct perf_layout *l, uint64_t id)
{
    if (l->events == 1)
        return 0;
    for (uint32_t i = 0; i < l->events; i++) {
        if (l->ids[i] == id)
            return i;
    }
    return PERF_EVENTS_MAX;
}

bool perf_get(const struct perf_view *v, void *out, size_t size)
{
    if (v->head.size < size)
        return false;
    memcpy(out, v->bytes, size);
    return true;
}

bool perf_get_strobe(const struct perf_view *v, struct perf_strobe *out)
{
    return perf_get(v, out, sizeof(*out)) &&
           memcmp(out->magic, PERF_STROBE_MAGIC, sizeof(out->magic)) == 0 &&
           out->size <= v->head.size - sizeof(*out);
}

uint64_t perf_time(const struct perf_view *v)
{
    struct perf_sample sample;
    struct perf_trailer end;

    if (v->head.type == PERF_RECORD_SAMPLE)
        return perf_get(v, &sample, PERF_SAMPLE_PLAIN) ? sample.time : 0;
    if (v->head.type == PERF_RECORD_STROBE ||
        v->head.size < sizeof(v->head) + sizeof(end))
        return 0;
    memcpy(&end, v->bytes + v->head.size - sizeof(end), sizeof(end));
    return end.time;
}

const char *perf_string(const struct perf_view *v, size_t offset)
{
    if (offset >= v->head.size ||
        !memchr(v->bytes + offset, 0, v->head.size - offset))
        return NULL;
    return (const char *)v->bytes + offset;
}
