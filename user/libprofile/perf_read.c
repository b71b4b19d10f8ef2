#include "perf_read.h"

#include "perf_programs.h"
#include "perf_walk.h"
#include "shares.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERF_CONTEXT_MIN ((uint64_t)-4095) // any mark is at least that
#define ENTRIES_MAX (UINT16_MAX / 8)       // that a record has room for

struct reading {
    struct perf_file *files; // of the events that are read
    uint32_t count;
    struct samples *samples;
    struct perf_layout layout;
};

// The number, among the events that are read, of one of the file's; `count`:
// it is not read.
static uint32_t find_file(const struct reading *r, uint32_t event)
{
    uint32_t i = 0;

    while (i < r->count && r->files[i].event != event)
        i++;
    return i;
}

// --- samples ----------------------------------------------------------------

// A sample's chain while it is taken apart: the innermost place first.
struct path {
    struct place places[ENTRIES_MAX];
    uint32_t depth;
};

static struct place place_of(const struct samples *s, const struct program *p,
                             bool kernel, uint32_t address)
{
    if (kernel)
        return (struct place){ IMAGE_KERNEL, address };
    if (address < CHAIN_MARKS - 1)
        return (struct place){ IMAGE_CUT, address };
    if (s->vdso != 0 && address - s->vdso < VDSO_BYTES)
        return (struct place){ IMAGE_VDSO, address - s->vdso };
    if (p == NULL)
        return (struct place){ IMAGE_UNKNOWN, address };
    // What the task has made itself is in no file.
    if (address - p->code < p->code_size)
        address -= p->load_bias;
    return (struct place){ p->image, address };
}

// Entries behind a mark: the first is where the code was interrupted, each
// other one the last byte of a call. `depth` of them are in the record.
static bool take_chain(const struct perf_view *v, const struct samples *s,
                       const struct program *p, uint64_t depth,
                       struct path *path)
{
    bool kernel = (v->head.misc & PERF_MISC_CPUMODE) == PERF_MISC_KERNEL;
    const uint8_t *chain = v->bytes + sizeof(struct perf_sample);
    uint64_t entry;

    for (uint64_t i = 0; i < depth; i++) {
        memcpy(&entry, chain + i * sizeof(entry), sizeof(entry));
        if (entry >= PERF_CONTEXT_MIN) {
            kernel = entry == PERF_CONTEXT_KERNEL;
            continue;
        }
        if (entry > UINT32_MAX)
            return false;
        path->places[path->depth++] = place_of(s, p, kernel, (uint32_t)entry);
    }
    return true;
}

static uint8_t mode_of(const struct perf_sample *p)
{
    if (p->flags & SPROFILE_F_IDLE)
        return MODE_IDLE;
    if (p->flags & SPROFILE_F_IRQ)
        return MODE_IRQ;
    return (p->head.misc & PERF_MISC_CPUMODE) == PERF_MISC_KERNEL ? MODE_KERNEL
                                                                  : MODE_USER;
}

static void count_time(struct perf_file *f, uint64_t time)
{
    if (f->first == 0 || time < f->first)
        f->first = time;
    if (time > f->last)
        f->last = time;
}

static void count_sample(struct reading *r, const struct timed_sample *p)
{
    struct perf_file *f = &r->files[p->event];
    struct sample_count c = { .chain = p->chain,
                              .task = p->task,
                              .thread = p->thread,
                              .image = p->image,
                              .program = p->program,
                              .cpu = p->cpu,
                              .mode = p->mode,
                              .irqs_off = p->irqs_off,
                              .event = p->event,
                              .samples = 1,
                              .period = p->period };
    samples_count(r->samples, &c);
    f->samples++;
    count_time(f, p->time);
    if (f->sample != NULL)
        f->sample(f->arg, p);
}

// Without its chain, whose `depth` entries are in the record.
static bool get_sample(struct perf_sample *out, const struct perf_view *v,
                       bool chains)
{
    if (!chains) {
        out->depth = 0;
        return perf_get(v, out, PERF_SAMPLE_PLAIN);
    }
    return perf_get(v, out, sizeof(*out)) &&
           out->depth <= (v->head.size - sizeof(*out)) / sizeof(uint64_t);
}

static bool take_sample(struct reading *r, const struct perf_view *v)
{
    struct samples *s = r->samples;
    struct perf_sample in;
    struct path path;

    if (!get_sample(&in, v, r->layout.chains) || in.ip > UINT32_MAX)
        return false;
    uint32_t event = perf_event_of(&r->layout, in.id);
    uint32_t number = find_file(r, event);
    if (number == r->count)
        return event != PERF_EVENTS_MAX;
    const struct program *p = programs_find(&s->programs, in.pid, in.time);
    struct timed_sample out = { .time = in.time,
                                .period = in.period,
                                .task = in.pid,
                                .thread = in.tid,
                                .image = p != NULL ? p->image : IMAGE_UNKNOWN,
                                .program = programs_index(&s->programs, p),
                                .chain = CHAIN_ROOT,
                                .cpu = (uint16_t)in.cpu,
                                .mode = mode_of(&in),
                                .event = (uint8_t)number,
                                .irqs_off = in.flags & SPROFILE_F_IRQS_OFF };
    path.depth = 0;
    if (!take_chain(v, s, p, in.depth, &path))
        return false;
    if (path.depth == 0)
        path.places[path.depth++] =
            place_of(s, p, out.mode != MODE_USER, (uint32_t)in.ip);
    while (path.depth-- > 0)
        out.chain = chains_add(&s->chains, out.chain, path.places[path.depth]);
    count_sample(r, &out);
    return true;
}

static bool take_lost(struct reading *r, const struct perf_view *v)
{
    struct perf_lost lost;

    if (!perf_get(v, &lost, sizeof(lost)))
        return false;
    uint32_t event = perf_event_of(&r->layout, lost.id);
    uint32_t number = find_file(r, event);
    if (number < r->count) {
        r->files[number].lost += lost.count;
        r->samples->lost += lost.count;
    }
    return event != PERF_EVENTS_MAX;
}

// --- Strobe's own records ---------------------------------------------------

// The words of the command, with blanks between them: as many as there are
// whole.
static void take_command(struct perf_file *f, const uint8_t *at, size_t size)
{
    char *out = f->command, *end = out + sizeof(f->command) - 1;
    uint32_t words, length;

    if (size < sizeof(words))
        return;
    memcpy(&words, at, sizeof(words));
    at += sizeof(words);
    size -= sizeof(words);
    while (words-- > 0 && size >= sizeof(length)) {
        memcpy(&length, at, sizeof(length));
        at += sizeof(length);
        size -= sizeof(length);
        if (length > size)
            break;
        if (out != f->command && out < end)
            *out++ = ' ';
        size_t n = strnlen((const char *)at, length);
        n = n > (size_t)(end - out) ? (size_t)(end - out) : n;
        memcpy(out, at, n);
        out += n;
        at += length;
        size -= length;
    }
    *out = '\0';
}

static void take_version(struct perf_file *f, const uint8_t *at, size_t size)
{
    uint32_t length;

    if (size < sizeof(length))
        return;
    memcpy(&length, at, sizeof(length));
    length = MIN(length, size - sizeof(length));
    length = MIN(length, sizeof(f->version) - 1);
    memcpy(f->version, at + sizeof(length), length);
    f->version[length] = '\0';
}

static void end_names(struct perf_file *f)
{
    f->info.source[sizeof(f->info.source) - 1] = '\0';
    f->info.event[sizeof(f->info.event) - 1] = '\0';
    f->info.instead_of[sizeof(f->info.instead_of) - 1] = '\0';
    f->asked.source[sizeof(f->asked.source) - 1] = '\0';
    f->asked.event[sizeof(f->asked.event) - 1] = '\0';
}

// Of a structure that has grown since, what is known here; of an older one, the
// rest is zero.
static void take_structure(void *out, size_t room, const uint8_t *bytes,
                           size_t size)
{
    memset(out, 0, room);
    memcpy(out, bytes, size < room ? size : room);
}

// What concerns one event, or the whole file.
static void take_own_of(struct perf_file *f, const struct perf_strobe *own,
                        const uint8_t *bytes)
{
    uint32_t of_event = f->event << PERF_STROBE_EVENT_SHIFT;

    if (own->kind == (PERF_STROBE_OPTIONS | of_event)) {
        take_structure(&f->asked, sizeof(f->asked), bytes, own->size);
    } else if (own->kind == (PERF_STROBE_INFO | of_event)) {
        take_structure(&f->info, sizeof(f->info), bytes, own->size);
        f->has_info = true;
    } else if (own->kind == PERF_STROBE_FEATURE + PERF_FEATURE_COMMAND) {
        take_command(f, bytes, own->size);
    } else if (own->kind == PERF_STROBE_FEATURE + PERF_FEATURE_VERSION) {
        take_version(f, bytes, own->size);
    }
    end_names(f);
}

static bool take_own(struct reading *r, const struct perf_view *v)
{
    struct perf_strobe own;

    if (!perf_get_own(v, &own))
        return false;
    for (uint32_t i = 0; i < r->count; i++)
        take_own_of(&r->files[i], &own, v->bytes + sizeof(own));
    return true;
}

// --- all records ------------------------------------------------------------

static bool take_record(struct reading *r, const struct perf_view *v)
{
    switch (v->head.type) {
    case PERF_RECORD_SAMPLE:
        return take_sample(r, v);
    case PERF_RECORD_LOST:
        return take_lost(r, v);
    case PERF_RECORD_STROBE:
        return take_own(r, v);
    }
    return true; // of programs, or of no interest
}

static void read_samples(struct reading *r)
{
    struct perf_walk walk = { .layout = &r->layout };
    struct perf_view v;
    uint64_t records = 0;

    while (perf_next(&walk, &v)) {
        r->samples->reader.malformed += !take_record(r, &v);
        records++;
    }
    r->samples->reader.malformed += walk.corrupt;
    for (uint32_t i = 0; i < r->count; i++) {
        struct perf_file *f = &r->files[i];
        f->records = records;
        f->chains = r->layout.chains;
        f->cut = r->layout.cut || walk.corrupt || walk.cut_bytes > 0;
        f->cut_bytes = walk.cut_bytes;
    }
}

// --- events -----------------------------------------------------------------

// As perf_event_name, of a structure that may end anywhere.
static void take_name(struct perf_events *e, const struct perf_view *v)
{
    struct sprofile_info info;
    struct perf_strobe own;

    if (v->head.type != PERF_RECORD_STROBE || !perf_get_own(v, &own))
        return;
    uint32_t event = own.kind >> PERF_STROBE_EVENT_SHIFT;
    if ((own.kind & PERF_STROBE_KIND_MASK) != PERF_STROBE_INFO ||
        event >= e->count)
        return;
    take_structure(&info, sizeof(info), v->bytes + sizeof(own), own.size);
    const char *name = info.event[0] != '\0' ? info.event : info.source;
    size_t room =
        info.event[0] != '\0' ? sizeof(info.event) : sizeof(info.source);
    snprintf(e->name[event], sizeof(e->name[event]), "%.*s", (int)room - 1,
             name);
}

const char *perf_read_events(struct perf_events *e, const void *bytes,
                             size_t size)
{
    struct perf_layout layout;
    struct perf_walk walk = { .layout = &layout };
    struct perf_view v;
    const char *problem = perf_layout(&layout, bytes, size);

    *e = (struct perf_events){ .count = layout.events };
    if (problem != NULL)
        return problem;
    for (uint32_t i = 0; i < e->count; i++)
        snprintf(e->name[i], sizeof(e->name[i]), "event-%u", i + 1);
    while (perf_next(&walk, &v))
        take_name(e, &v);
    return NULL;
}

uint32_t perf_find_event(const struct perf_events *e, const char *name)
{
    uint32_t i = 0;

    while (i < e->count && strcmp(e->name[i], name) != 0)
        i++;
    return i;
}

void perf_list_events(const struct perf_events *e, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < e->count && used < size; i++)
        used += snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "",
                         e->name[i]);
}

// --- the whole --------------------------------------------------------------

// What can be said without the writer's own figures, of event `number` of those
// that are read.
static void info_from_samples(struct perf_file *f, uint32_t number,
                              const struct samples *s)
{
    struct sprofile_info *i = &f->info;
    uint64_t modes[MODES] = { 0 };

    for (uint32_t n = 0; n < s->count; n++) {
        const struct sample_count *c = &s->counts[n];
        if (c->event != number)
            continue;
        modes[c->mode] += c->samples;
        i->taken += c->samples;
        i->irqs_off += c->irqs_off ? c->samples : 0;
        if (c->cpu >= i->cpus)
            i->cpus = c->cpu + 1u;
    }
    i->user = modes[MODE_USER];
    i->kernel = modes[MODE_KERNEL];
    i->irq = modes[MODE_IRQ];
    i->idle = modes[MODE_IDLE];
    i->lost = f->lost;
    i->taken += f->lost;
    i->elapsed_ns = f->last - f->first;
}

const char *perf_read(struct perf_file *files, uint32_t count,
                      struct samples *s, const void *bytes, size_t size)
{
    struct reading r = { .files = files, .count = count, .samples = s };
    const char *problem = perf_layout(&r.layout, bytes, size);

    for (uint32_t i = 0; problem == NULL && i < count; i++) {
        if (files[i].event >= r.layout.events)
            problem = "it has no such event";
    }
    if (problem == NULL)
        problem = perf_read_programs(s, &r.layout);
    if (problem != NULL)
        return problem;
    read_samples(&r);
    for (uint32_t i = 0; i < count; i++) {
        if (files[i].has_info)
            shares_even(s, i, &files[i].info);
        else
            info_from_samples(&files[i], i, s);
    }
    return NULL;
}
