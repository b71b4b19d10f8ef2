// Checks blocks and records, and merges the CPUs' events by time.
//
// The kernel says of each block up to which time it is complete; one that was
// cut off is, up to its last record. Records after the earliest of these times
// are held until the next read. Each is decoded when it is its CPU's next one.
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

static uint64_t time_at(const uint8_t *p)
{
    struct trace_time t;

    memcpy(&t, p, sizeof(t));
    return (uint64_t)t.time[1] << 32 | t.time[0];
}

// Without the bits that each record has.
static uint64_t epoch_of(uint64_t time)
{
    return time >> TRACE_TIME_BITS << TRACE_TIME_BITS;
}

static bool is_special(uint32_t type)
{
    return type >= TRACE_R_PAD && type <= TRACE_R_LOST;
}

// --- checking ---------------------------------------------------------------

static const char *check_time(struct trace_reader_cpu *c, const uint8_t *p,
                              uint32_t head)
{
    uint64_t time = time_at(p), epoch = epoch_of(time);

    if (time != (epoch | TRACE_HEAD_TIME(head)))
        return "a record of the time contradicts itself";
    if (c->known && epoch < c->epoch)
        return "time runs backwards";
    // An event may be of the time of the record before it.
    if (TRACE_HEAD_TYPE(head) == TRACE_R_LOST || epoch > c->epoch)
        c->last_low = TRACE_HEAD_TIME(head);
    c->epoch = epoch;
    c->known = true;
    return NULL;
}

// Of an event, the only kind of record of which there are many.
static inline const char *check_event(struct trace_reader *r,
                                      struct trace_reader_cpu *c,
                                      const uint8_t *p, uint32_t head)
{
    if (!c->known)
        return "an event has no time";
    if (TRACE_HEAD_TIME(head) < c->last_low)
        return "time runs backwards";
    c->last_low = TRACE_HEAD_TIME(head);
    if (r->entry && TRACE_HEAD_TYPE(head) == TRACE_R_ENTRY &&
        TRACE_HEAD_WORDS(head) > 1)
        r->entry(r->arg, word_at(p + 4));
    r->events++;
    return NULL;
}

static const char *check_record(struct trace_reader *r,
                                struct trace_reader_cpu *c, const uint8_t *p,
                                uint32_t head)
{
    uint32_t type = TRACE_HEAD_TYPE(head), size = TRACE_HEAD_WORDS(head) * 4;

    if (!is_special(type))
        return check_event(r, c, p, head);
    if (type == TRACE_R_PAD)
        return NULL;
    if (type == TRACE_R_TIME)
        return size == sizeof(struct trace_time)
                   ? check_time(c, p, head)
                   : "a record of the time has another size";
    if (size != sizeof(struct trace_lost))
        return "a record of losses has another size";
    r->lost += word_at(p + sizeof(struct trace_time));
    return check_time(c, p, head);
}

// What is left of the CPU's records, and more, come to the reader's memory.
static const char *hold(struct trace_reader_cpu *c, const uint8_t *more,
                        size_t size)
{
    size_t rest = (size_t)(c->end - c->at);
    uint8_t *memory = c->memory;

    if (c->room < rest + size) {
        c->room = rest + size + rest / 2;
        c->memory = malloc(c->room);
    }
    if (c->memory) {
        memmove(c->memory, c->at, rest);
        if (size)
            memcpy(c->memory + rest, more, size);
    }
    if (c->memory != memory)
        free(memory);
    c->at = c->memory;
    c->end = c->memory ? c->memory + rest + size : NULL;
    if (!c->memory)
        c->room = 0;
    return c->memory || !(rest + size) ? NULL : no_memory;
}

// Takes the records up to the first one that makes no sense.
static const char *take_records(struct trace_reader *r,
                                struct trace_reader_cpu *c, const uint8_t *p,
                                size_t size)
{
    const char *problem = NULL;
    size_t done = 0;

    for (size_t n; size - done >= 4 && !problem; done += problem ? 0 : n) {
        uint32_t head = word_at(p + done);
        n = TRACE_HEAD_WORDS(head) * 4;
        if (n == 0)
            problem = "a record is empty";
        else if (n > size - done)
            problem = "a record is cut off";
        else
            problem = check_record(r, c, p + done, head);
    }
    c->last = c->epoch | c->last_low;
    if (c->at != c->end) {
        const char *no_room = hold(c, p, done);
        return problem ? problem : no_room;
    }
    c->at = p;
    c->end = p + done;
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

// --- events in the order of time --------------------------------------------

static inline void decode_event(const struct trace_reader *r,
                                struct trace_reader_cpu *c,
                                const uint8_t *fields, uint32_t size,
                                uint32_t head)
{
    struct trace_event *e = &c->next;
    struct trace_sched_switch change;

    e->time = c->next_epoch | TRACE_HEAD_TIME(head);
    e->partial = e->time < r->partial_until;
    e->thread = c->thread;
    e->type = TRACE_HEAD_TYPE(head);
    // All that the event before did not have is 0.
    for (uint32_t i = size; i < e->size && i < sizeof(e->fields); i += 4)
        memset(e->fields + i, 0, 4);
    e->size = size;
    for (uint32_t i = 0; i < size && i < sizeof(e->fields); i += 4)
        memcpy(e->fields + i, fields + i, 4); // of the few words that there are
    if (e->type == TRACE_sched_switch &&
        trace_fields(e, &change, sizeof(change))) {
        e->thread = change.prev; // a TIME record here has the next one
        c->thread = change.next;
    }
    if (e->type == TRACE_R_CALL && size >= 4) {
        uint32_t function = word_at(fields) - TRACE_CALL_OFFSET;
        memcpy(e->fields, &function, sizeof(function));
    }
}

// Decodes the CPU's next event, if one is held. The records are checked.
static void decode_next(const struct trace_reader *r,
                        struct trace_reader_cpu *c)
{
    while (c->at < c->end) {
        const uint8_t *p = c->at, *fields = p + 4;
        uint32_t head = word_at(p), size = TRACE_HEAD_WORDS(head) * 4;
        uint32_t type = TRACE_HEAD_TYPE(head);
        c->at += size;
        if (is_special(type)) {
            if (type == TRACE_R_PAD)
                continue;
            c->next_epoch = epoch_of(time_at(p));
            c->thread = word_at(p + offsetof(struct trace_time, thread));
            if (type == TRACE_R_TIME)
                continue;
            fields = p + sizeof(struct trace_time);
        }
        decode_event(r, c, fields, (uint32_t)(p + size - fields), head);
        c->is_next = true;
        return;
    }
    c->is_next = false;
}

// The CPU with the earliest event, of several the first CPU; NULL: none is
// held. It has all events before *until.
static struct trace_reader_cpu *earliest(struct trace_reader *r,
                                         uint64_t *until)
{
    struct trace_reader_cpu *first = NULL, *second = NULL;

    for (struct trace_reader_cpu *c = r->cpu; c < r->cpu + r->cpus; c++) {
        if (!c->is_next)
            decode_next(r, c);
        if (!c->is_next)
            continue;
        if (!first || c->next.time < first->next.time) {
            second = first;
            first = c;
        } else if (!second || c->next.time < second->next.time) {
            second = c;
        }
    }
    *until = second ? second->next.time + (second > first) : UINT64_MAX;
    return first;
}

static void deliver(struct trace_reader *r, uint64_t until)
{
    struct trace_reader_cpu *c;
    uint64_t other;

    while ((c = earliest(r, &other)) && c->next.time < until) {
        if (other > until)
            other = until;
        do {
            r->event(r->arg, &c->next);
            decode_next(r, c);
        } while (c->is_next && c->next.time < other);
    }
}

// The time up to which all events of all CPUs are here.
static uint64_t all_until(const struct trace_reader *r)
{
    uint64_t until = UINT64_MAX;

    for (uint32_t i = 0; i < r->cpus; i++) {
        if (r->cpu[i].until && r->cpu[i].until < until)
            until = r->cpu[i].until;
    }
    return until == UINT64_MAX ? 0 : until;
}

// --- blocks -----------------------------------------------------------------

// False: not enough memory.
static bool know_cpu(struct trace_reader *r, uint32_t cpu)
{
    if (cpu < r->cpus)
        return true;
    struct trace_reader_cpu *all = realloc(r->cpu, (cpu + 1) * sizeof(*all));
    if (!all)
        return false;
    r->cpu = all;
    for (; r->cpus <= cpu; r->cpus++)
        all[r->cpus] = (struct trace_reader_cpu){ .next.cpu = r->cpus };
    return true;
}

static const char *take_block(struct trace_reader *r,
                              const struct trace_block *b, const uint8_t *p,
                              size_t size)
{
    if (b->cpu == TRACE_BLOCK_TASKS)
        return take_tasks(r, p, size);
    if (b->cpu >= TRACE_CPUS_MAX)
        return "a block names a CPU that does not exist";
    if (!know_cpu(r, b->cpu))
        return no_memory;
    struct trace_reader_cpu *c = &r->cpu[b->cpu];
    const char *problem = take_records(r, c, p, size);
    c->until = b->until ? b->until : c->last;
    return problem;
}

static const char *take_blocks(struct trace_reader *r, const uint8_t *p,
                               size_t size)
{
    const char *problem = NULL;
    struct trace_block b;

    while (size && !problem) {
        if (size < sizeof(b))
            return "the head of a block is cut off";
        memcpy(&b, p, sizeof(b));
        p += sizeof(b);
        size -= sizeof(b);
        size_t there = b.size < size ? b.size : size;
        problem = take_block(r, &b, p, there);
        if (!problem && b.size > size)
            problem = "a block is cut off";
        p += there;
        size -= there;
    }
    return problem;
}

const char *trace_reader_take(struct trace_reader *r, const void *bytes,
                              size_t size)
{
    const char *problem = take_blocks(r, bytes, size);

    if (!problem)
        deliver(r, all_until(r));
    for (uint32_t i = 0; i < r->cpus; i++) {
        struct trace_reader_cpu *c = &r->cpu[i];
        const char *no_room = c->at != c->end ? hold(c, NULL, 0) : NULL;
        problem = problem ? problem : no_room;
    }
    return problem;
}

void trace_reader_finish(struct trace_reader *r)
{
    deliver(r, UINT64_MAX);
}

void trace_reader_free(struct trace_reader *r)
{
    for (uint32_t i = 0; i < r->cpus; i++)
        free(r->cpu[i].memory);
    free(r->cpu);
    r->cpu = NULL;
    r->cpus = 0;
}

bool trace_fields(const struct trace_event *e, void *out, size_t size)
{
    if (size > e->size || size > sizeof(e->fields))
        return false;
    memcpy(out, e->fields, size);
    return true;
}
