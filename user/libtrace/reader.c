// Decodes blocks and records, and merges the CPUs' events by time.
//
// The kernel says of each block up to which time it is complete; one that was
// cut off is, up to its last record. Events after the earliest of these times
// are held until the next read.
#include "reader.h"

#include <stdlib.h>
#include <string.h>

static const char no_memory[] = "not enough memory for the trace";

static uint32_t word_at(const uint8_t *p)
{
    uint32_t word;

    memcpy(&word, p, sizeof(word));
    return word;
}

// --- records ----------------------------------------------------------------

static struct trace_event *hold(struct trace_reader *r)
{
    if (r->count == r->room) {
        size_t room = r->room ? r->room * 2 : 1024;
        struct trace_event *more = realloc(r->held, room * sizeof(*more));
        if (!more)
            return NULL;
        r->held = more;
        r->room = room;
    }
    return &r->held[r->count++];
}

static const char *take_time(struct trace_reader *r, uint32_t cpu,
                             const uint8_t *p, uint32_t head)
{
    struct trace_time t;

    memcpy(&t, p, sizeof(t));
    uint64_t time = (uint64_t)t.time[1] << 32 | t.time[0];
    uint64_t epoch = time >> TRACE_TIME_BITS;
    if ((uint32_t)(time & ((1u << TRACE_TIME_BITS) - 1)) !=
        TRACE_HEAD_TIME(head))
        return "a record of the time contradicts itself";
    if (r->cpu[cpu].known && epoch < r->cpu[cpu].epoch)
        return "time runs backwards";
    r->cpu[cpu].epoch = epoch;
    r->cpu[cpu].thread = t.thread;
    r->cpu[cpu].known = true;
    return NULL;
}

static const char *take_event(struct trace_reader *r, uint32_t cpu,
                              const uint8_t *fields, uint32_t size,
                              uint32_t head)
{
    struct trace_event *e;

    if (!r->cpu[cpu].known)
        return "an event has no time";
    e = hold(r);
    if (!e)
        return no_memory;
    memset(e->fields, 0, sizeof(e->fields));
    e->time = r->cpu[cpu].epoch << TRACE_TIME_BITS | TRACE_HEAD_TIME(head);
    r->cpu[cpu].last = e->time;
    e->partial = e->time < r->partial_until;
    e->number = r->cpu[cpu].number++;
    e->cpu = cpu;
    e->thread = r->cpu[cpu].thread;
    e->type = TRACE_HEAD_TYPE(head);
    e->size = size;
    for (uint32_t i = 0; i < size && i < sizeof(e->fields); i += 4)
        memcpy(e->fields + i, fields + i, 4); // of the few words that there are
    struct trace_sched_switch change;
    if (e->type == TRACE_sched_switch &&
        trace_fields(e, &change, sizeof(change))) {
        e->thread = change.prev; // a TIME record here has the next one
        r->cpu[cpu].thread = change.next;
    }
    if (e->type == TRACE_R_CALL && e->size >= 4) {
        uint32_t function = word_at(fields) - TRACE_CALL_OFFSET;
        memcpy(e->fields, &function, sizeof(function));
    }
    if (e->type == TRACE_R_LOST)
        r->lost += word_at(fields);
    else
        r->events++;
    return NULL;
}

static const char *take_record(struct trace_reader *r, uint32_t cpu,
                               const uint8_t *p, uint32_t size)
{
    uint32_t head = word_at(p);
    uint32_t type = TRACE_HEAD_TYPE(head);
    const char *problem;

    switch (type) {
    case TRACE_R_PAD:
        return NULL;
    case TRACE_R_TIME:
        return size == sizeof(struct trace_time)
                   ? take_time(r, cpu, p, head)
                   : "a record of the time has another size";
    case TRACE_R_LOST:
        if (size != sizeof(struct trace_lost))
            return "a record of losses has another size";
        problem = take_time(r, cpu, p, head);
        return problem ? problem
                       : take_event(r, cpu, p + sizeof(struct trace_time),
                                    size - sizeof(struct trace_time), head);
    default:
        return take_event(r, cpu, p + 4, size - 4, head);
    }
}

static const char *take_records(struct trace_reader *r, uint32_t cpu,
                                const uint8_t *p, size_t size)
{
    const char *problem = NULL;

    for (size_t n; size >= 4 && !problem; p += n, size -= n) {
        n = TRACE_HEAD_WORDS(word_at(p)) * 4;
        if (n == 0)
            return "a record is empty";
        if (n > size)
            return "a record is cut off";
        problem = take_record(r, cpu, p, (uint32_t)n);
    }
    return problem;
}

static const char *take_tasks(struct trace_reader *r, const uint8_t *p,
                              size_t size)
{
    struct sprofile_record head;
    // Aligned, and with room for a string's end.
    union {
        struct sprofile_task task;
        char bytes[sizeof(struct sprofile_task) + SPROFILE_PATH_MAX + 16];
    } t;

    for (; size >= sizeof(head); p += head.size, size -= head.size) {
        memcpy(&head, p, sizeof(head));
        if (head.size < sizeof(t.task) || head.size > size ||
            head.size >= sizeof(t))
            return "a record of a task has a wrong size";
        if (head.type != SPROFILE_R_TASK || !r->task)
            continue;
        memset(&t, 0, sizeof(t));
        memcpy(&t, p, head.size);
        t.task.name[sizeof(t.task.name) - 1] = '\0';
        r->task(r->arg, &t.task);
    }
    return NULL;
}

// --- blocks -----------------------------------------------------------------

static int compare(const void *a, const void *b)
{
    const struct trace_event *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->cpu != y->cpu)
        return x->cpu < y->cpu ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

// Those of one CPU are.
static bool in_order(const struct trace_reader *r)
{
    for (size_t i = 1; i < r->count; i++) {
        if (compare(&r->held[i - 1], &r->held[i]) > 0)
            return false;
    }
    return true;
}

static void deliver(struct trace_reader *r, uint64_t until)
{
    size_t n = 0;

    if (!in_order(r))
        qsort(r->held, r->count, sizeof(*r->held), compare);
    while (n < r->count && r->held[n].time < until)
        r->event(r->arg, &r->held[n++]);
    if (n)
        memmove(r->held, r->held + n, (r->count - n) * sizeof(*r->held));
    r->count -= n;
}

// The time up to which all events of all CPUs are here.
static uint64_t all_until(const struct trace_reader *r)
{
    uint64_t until = UINT64_MAX;

    for (uint32_t i = 0; i < TRACE_CPUS_MAX; i++) {
        if (r->cpu[i].until && r->cpu[i].until < until)
            until = r->cpu[i].until;
    }
    return until == UINT64_MAX ? 0 : until;
}

const char *trace_reader_take(struct trace_reader *r, const void *bytes,
                              size_t size)
{
    const uint8_t *p = bytes;
    const char *problem = NULL;
    struct trace_block b;

    while (size && !problem) {
        if (size < sizeof(b))
            return "the head of a block is cut off";
        memcpy(&b, p, sizeof(b));
        p += sizeof(b);
        size -= sizeof(b);
        size_t there = b.size < size ? b.size : size;
        if (b.cpu == TRACE_BLOCK_TASKS) {
            problem = take_tasks(r, p, there);
        } else if (b.cpu < TRACE_CPUS_MAX) {
            problem = take_records(r, b.cpu, p, there);
            r->cpu[b.cpu].until = b.until ? b.until : r->cpu[b.cpu].last;
        } else {
            return "a block is of no CPU";
        }
        if (!problem && b.size > size)
            problem = "a block is cut off";
        p += there;
        size -= there;
    }
    if (!problem)
        deliver(r, all_until(r));
    return problem;
}

void trace_reader_finish(struct trace_reader *r)
{
    deliver(r, UINT64_MAX);
}

void trace_reader_free(struct trace_reader *r)
{
    free(r->held);
    r->held = NULL;
    r->count = r->room = 0;
}

bool trace_fields(const struct trace_event *e, void *out, size_t size)
{
    if (size > e->size || size > sizeof(e->fields))
        return false;
    memcpy(out, e->fields, size);
    return true;
}
