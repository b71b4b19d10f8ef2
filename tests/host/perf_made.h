// Builds perf.data files record by record (user/libprofile/perf_format.h), for
// the tests of their readers.
#pragma once

#include "test.h"

#include <strobe/kbox.h>

#include "user/libprofile/perf_format.h"

#define MADE_ROOM 16384u
struct made {
    _Alignas(8) u8 bytes[MADE_ROOM];
    size_t size, last; // last: offset of the last record
};

#define MADE_DATA (sizeof(struct perf_header) + sizeof(struct perf_file_attr))

static inline void *made_more(struct made *m, size_t size)
{
    assert_true(m->size + size <= MADE_ROOM);
    m->last = m->size;
    m->size += size;
    return memset(m->bytes + m->last, 0, size);
}

static inline struct perf_file_attr *made_attr(struct made *m)
{
    struct perf_file_attr *a = made_more(m, sizeof(*a));
    a->attr.type = PERF_TYPE_SOFTWARE;
    a->attr.size = sizeof(a->attr);
    a->attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                          PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_CPU |
                          PERF_SAMPLE_PERIOD | PERF_SAMPLE_IDENTIFIER;
    return a;
}

// Begins a file with one event, which has no id.
static inline void made_begin(struct made *m)
{
    *m = (struct made){ 0 };
    struct perf_header *h = made_more(m, sizeof(*h));
    memcpy(h->magic, PERF_MAGIC, sizeof(h->magic));
    h->size = sizeof(*h);
    h->attr_size = sizeof(struct perf_file_attr);
    h->attrs = (struct perf_section){ sizeof(*h), h->attr_size };
    h->data = (struct perf_section){ MADE_DATA, 0 };
    made_attr(m);
}

// Begins a file with `count` events, which have these ids.
static inline void made_begin_events(struct made *m, const u64 *ids, u32 count)
{
    made_begin(m);
    m->size = sizeof(struct perf_header);
    memcpy(made_more(m, count * sizeof(*ids)), ids, count * sizeof(*ids));
    struct perf_header *h = (void *)m->bytes;
    h->attrs = (struct perf_section){ m->size, count * h->attr_size };
    h->data.offset = m->size + h->attrs.size;
    for (u32 i = 0; i < count; i++)
        made_attr(m)->ids =
            (struct perf_section){ sizeof(*h) + i * sizeof(*ids),
                                   sizeof(*ids) };
}

// Completes the file: stores the size of its records.
static inline void made_end(struct made *m)
{
    struct perf_header *h = (void *)m->bytes;
    h->data.size = m->size - h->data.offset;
}

static inline void *made_record(struct made *m, u32 type, u32 misc, u32 size)
{
    struct perf_record *head = made_more(m, size);
    *head = (struct perf_record){ type, misc, size };
    return head;
}

static inline struct perf_trailer made_trailer(u32 task, u64 time)
{
    return (struct perf_trailer){ .pid = task, .tid = task, .time = time };
}

static inline void made_comm(struct made *m, u32 task, const char *name,
                             bool exec, u64 time)
{
    struct perf_comm *c =
        made_record(m, PERF_RECORD_COMM, exec ? PERF_MISC_COMM_EXEC : 0,
                    sizeof(struct perf_comm));
    c->pid = c->tid = task;
    strncpy(c->name, name, sizeof(c->name) - 1);
    c->trailer = made_trailer(task, time);
}

static inline void made_fork(struct made *m, u32 task, u32 parent, u64 time)
{
    struct perf_task *t =
        made_record(m, PERF_RECORD_FORK, 0, sizeof(struct perf_task));
    t->pid = t->tid = task;
    t->parent_pid = t->parent_tid = parent;
    t->time = time;
    t->trailer = made_trailer(task, time);
}

// `id`: the first byte of a build id whose others are 0; 0: none.
static inline void made_mmap(struct made *m, u32 task, const char *path,
                             u32 address, u8 id, u64 time)
{
    size_t name = ALIGN_UP(strlen(path) + 1, (size_t)8);
    u32 size = sizeof(struct perf_mmap2) + name + sizeof(struct perf_trailer);
    struct perf_mmap2 *p = made_record(
        m, PERF_RECORD_MMAP2, id != 0 ? PERF_MISC_MMAP_BUILD_ID : 0, size);
    p->pid = p->tid = task;
    p->address = address;
    p->size = 0x1000;
    p->build_id_size = id != 0 ? sizeof(p->build_id) : 0;
    p->build_id[0] = id;
    strcpy(p->path, path);
    struct perf_trailer end = made_trailer(task, time);
    memcpy(p->path + name, &end, sizeof(end));
}

struct made_sample {
    u32 task, thread, cpu, flags;
    u64 time, period;
    const u64 *chain; // marks included
    u32 depth;
    u64 id; // 0: the id is 1
};

static inline void made_sample(struct made *m, const struct made_sample *s)
{
    bool kernel =
        s->flags & (SPROFILE_F_KERNEL | SPROFILE_F_IDLE | SPROFILE_F_IRQ);
    struct perf_sample *p = made_record(
        m, PERF_RECORD_SAMPLE, kernel ? PERF_MISC_KERNEL : PERF_MISC_USER,
        sizeof(struct perf_sample) + s->depth * sizeof(u64));
    p->id = s->id != 0 ? s->id : 1;
    p->pid = s->task;
    p->tid = s->thread;
    p->time = s->time;
    p->cpu = s->cpu;
    p->flags = s->flags;
    p->period = s->period;
    p->depth = s->depth;
    for (u32 i = 0; i < s->depth; i++)
        p->chain[i] = s->chain[i];
    p->ip = s->depth > 1 ? s->chain[1] : 0;
}

static inline void made_lost(struct made *m, u64 id, u64 count, u64 time)
{
    struct perf_lost *l =
        made_record(m, PERF_RECORD_LOST, 0, sizeof(struct perf_lost));
    l->id = id;
    l->count = count;
    l->trailer = made_trailer(0, time);
}

static inline void made_own(struct made *m, u32 kind, const void *bytes,
                            u32 size)
{
    struct perf_strobe *s =
        made_record(m, PERF_RECORD_STROBE, 0, sizeof(*s) + ALIGN_UP(size, 8u));
    memcpy(s->magic, PERF_STROBE_MAGIC, sizeof(s->magic));
    s->kind = kind;
    s->size = size;
    memcpy(s->bytes, bytes, size);
}
