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

// Why an event's time is refused.
static const char *bad_time(const struct trace_reader_cpu *c)
{
    return c->known ? "time runs backwards" : "an event has no time";
}

static const char *check_special(struct trace_reader *r,
                                 struct trace_reader_cpu *c, const uint8_t *p,
                                 uint32_t head)
{
    uint32_t type = TRACE_HEAD_TYPE(head), size = TRACE_HEAD_WORDS(head) * 4;

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
    c->at = c->behind = c->memory;
    c->is_next = false;
    c->end = c->memory ? c->memory + rest + size : NULL;
    if (!c->memory)
        c->room = 0;
    return c->memory || !(rest + size) ? NULL : no_memory;
}

// Checks the records up to the first one that makes no sense, which is *end.
static const char *check_records(struct trace_reader *r,
                                 struct trace_reader_cpu *c, const uint8_t *p,
                                 const uint8_t **end)
{
    const char *problem = NULL;
    uint32_t events = 0;

    for (uint32_t bytes; *end - p >= 4; p += bytes) {
        uint32_t head = word_at(p), type = TRACE_HEAD_TYPE(head);
        uint32_t low = TRACE_HEAD_TIME(head);
        bytes = TRACE_HEAD_WORDS(head) * 4;
        if (bytes - 1 >= (size_t)(*end - p))
            problem = bytes ? "a record is cut off" : "a record is empty";
        else if (is_special(type))
            problem = check_special(r, c, p, head);
        else if (low < c->last_low || !c->known)
            problem = bad_time(c);
        if (problem)
            break;
        if (is_special(type))
            continue;
        c->last_low = low;
        if (type == TRACE_R_ENTRY && r->entry && bytes > 4)
            r->entry(r->arg, word_at(p + 4));
        events++;
    }
    *end = p;
    r->events += events;
    return problem;
}

static const char *take_records(struct trace_reader *r,
                                struct trace_reader_cpu *c, const uint8_t *p,
                                size_t size)
{
    const uint8_t *end = p + size;
    const char *problem = check_records(r, c, p, &end);

    c->last = c->epoch | c->last_low;
    if (c->at != c->end) {
        const char *no_room = hold(c, p, (size_t)(end - p));
        return problem ? problem : no_room;
    }
    c->at = c->behind = p;
    c->end = end;
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

// Bytes that the fields have, by type.
#define BYTES(type) (sizeof(type) < 8 ? 8 : sizeof(type))
#define POINT(group, name, fields, when) \
    [TRACE_##group##_##name] = BYTES(struct trace_##group##_##name),
static const uint8_t field_bytes[TRACE_HEAD_TYPE(UINT32_MAX) + 1] = {
#include <strobe/points.def>
    [TRACE_R_LOST] = 8,
    [TRACE_R_ENTRY] = sizeof(struct trace_entry) - 4,
    [TRACE_R_EXIT] = sizeof(struct trace_return) - 4,
    [TRACE_R_CALL] = sizeof(struct trace_call) - 4,
};
#undef POINT
#undef BYTES

// The fields that the record does not have are 0.
static void pad_fields(struct trace_reader_cpu *c)
{
    struct trace_event *e = &c->next;
    uint32_t bytes = e->size < TRACE_FIELDS_MAX ? e->size : TRACE_FIELDS_MAX;

    memcpy(c->padded, e->fields, bytes);
    memset(c->padded + bytes, 0, TRACE_FIELDS_MAX - bytes);
    e->fields = c->padded;
}

// What is to be known of a switch and a call beyond the record.
_Static_assert(TRACE_sched_switch == 0, "decode_next() compares once");
static void complete_event(struct trace_reader_cpu *c)
{
    struct trace_event *e = &c->next;
    struct trace_sched_switch change;

    if (e->type == TRACE_sched_switch &&
        trace_fields(e, &change, sizeof(change))) {
        e->thread = change.prev; // a TIME record here has the next one
        c->thread = change.next;
    }
    if (e->type == TRACE_R_CALL && e->size >= 4) {
        pad_fields(c);
        uint32_t function = word_at(e->fields) - TRACE_CALL_OFFSET;
        memcpy(c->padded, &function, sizeof(function));
    }
}

// Of a record with the time.
static uint32_t decode_time(struct trace_reader_cpu *c, const uint8_t *p)
{
    c->next_epoch = epoch_of(time_at(p));
    c->thread = word_at(p + offsetof(struct trace_time, thread));
    return sizeof(struct trace_time);
}

// Decodes the CPU's next event, if one is held. The records are checked.
static inline void decode_next(const struct trace_reader *r,
                               struct trace_reader_cpu *c)
{
    struct trace_event *e = &c->next;
    uint32_t head, type, before;
    const uint8_t *p;

    do {
        c->at = p = c->behind;
        c->is_next = p < c->end;
        if (!c->is_next)
            return;
        head = word_at(p);
        type = TRACE_HEAD_TYPE(head);
        before = 4;
        if (is_special(type) && type != TRACE_R_PAD)
            before = decode_time(c, p);
        c->behind = p + TRACE_HEAD_WORDS(head) * 4;
    } while (type == TRACE_R_PAD || type == TRACE_R_TIME);
    e->fields = p + before;
    e->size = (uint32_t)(c->behind - e->fields);
    e->time = c->next_epoch | TRACE_HEAD_TIME(head);
    e->partial = e->time < r->partial_until;
    e->thread = c->thread;
    e->type = type;
    if (e->size < field_bytes[type])
        pad_fields(c);
    if (type - 1 >= TRACE_R_CALL - 1) // or sched/switch: unsigned
        complete_event(c);
}

// The CPU with the earliest event, of several the first CPU; NULL: none is
// held. It has all events before *until. A CPU whose next event is not decoded
// comes first.
static struct trace_reader_cpu *earliest(struct trace_reader *r,
                                         uint64_t *until)
{
    struct trace_reader_cpu *first = NULL, *second = NULL;

    *until = 0;
    for (struct trace_reader_cpu *c = r->cpu; c < r->cpu + r->cpus; c++) {
        if (!c->is_next && c->at < c->end)
            return c;
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

    while ((c = earliest(r, &other)) &&
           !(c->is_next && c->next.time >= until)) {
        if (other > until)
            other = until;
        do {
            if (c->is_next)
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
    if (size > e->size)
        return false;
    memcpy(out, e->fields, size);
    return true;
}
