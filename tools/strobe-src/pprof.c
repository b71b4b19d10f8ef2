// pprof's profile.proto (github.com/google/pprof, proto/profile.proto), in
// gzip: a sample for each chain of each thread and CPU, with its count and
// period. The lines of the report's header are comments.
#include "export.h"
#include "gzip.h"
#include "lines.h"
#include "places.h"
#include "protobuf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 512
#define NS_PER_SECOND 1000000000ull
#define ADDRESSES (1ull << 32)

// Field numbers of the messages.
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE,
    PROFILE_MAPPING,
    PROFILE_LOCATION,
    PROFILE_FUNCTION,
    PROFILE_STRING,
    PROFILE_DURATION_NS = 10,
    PROFILE_PERIOD_TYPE,
    PROFILE_PERIOD,
    PROFILE_COMMENT,
};
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };
enum {
    MAPPING_ID = 1,
    MAPPING_LIMIT = 3,
    MAPPING_FILE = 5,
    MAPPING_BUILD_ID,
    MAPPING_HAS_FUNCTIONS,
};
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_FILE = 4 };

// Ids begin at 1. Mappings are images. Functions are rows of the view, then
// idle, then inlined functions. Locations are places, then idle, then the
// places where idle CPUs wait.
struct pprof {
    struct export *e;
    struct lines *lines;
    struct message out, part, list, inner;
    struct names texts; // the string table; 0 is ""
    struct places places;
    uint32_t *waits;      // a node of each place where an idle CPU waits, or 0
    struct names inlined; // IMAGE NAME: "4 memcpy"
    const char **files;   // source file of each name in `inlined`
};

// --- strings ----------------------------------------------------------------

// Returns the number of a string, which is made printable: it must be UTF-8.
static uint32_t number_of(struct pprof *p, const char *text)
{
    char *copy = printable(enough(strdup(text)));
    uint32_t number = names_add(&p->texts, copy);

    free(copy);
    return number;
}

static void add_text(struct pprof *p, struct message *m, uint32_t field,
                     const char *text)
{
    message_number(m, field, number_of(p, text));
}

// --- mappings, functions, locations -----------------------------------------

static const struct chain_node *node_of(const struct pprof *p, uint32_t n)
{
    return &p->e->profile->samples.chains.nodes[n];
}

static void put_mappings(struct pprof *p)
{
    const struct images *images = &p->e->profile->samples.images;

    for (uint32_t i = 0; i < images->count; i++) {
        const struct image *m = &images->list[i];
        char id[BUILD_ID_TEXT];
        message_number(&p->part, MAPPING_ID, i + 1);
        message_number(&p->part, MAPPING_LIMIT, ADDRESSES);
        add_text(p, &p->part, MAPPING_FILE, m->path);
        if (m->build_id_size > 0)
            add_text(p, &p->part, MAPPING_BUILD_ID,
                     build_id_text(id, m->build_id, m->build_id_size));
        message_number(&p->part, MAPPING_HAS_FUNCTIONS, 1);
        message_add(&p->out, PROFILE_MAPPING, &p->part);
    }
}

static void put_function(struct pprof *p, uint32_t id, const char *name,
                         const char *file)
{
    message_number(&p->part, FUNCTION_ID, id);
    add_text(p, &p->part, FUNCTION_NAME, name);
    add_text(p, &p->part, FUNCTION_FILE, file);
    message_add(&p->out, PROFILE_FUNCTION, &p->part);
}

// Call it after put_locations, which finds the inlined functions.
static void put_functions(struct pprof *p)
{
    const struct view *v = p->e->view;
    char name[NAME_SIZE];

    for (uint32_t row = 0; row < v->count; row++) {
        const struct view_row *r = &v->rows[row];
        struct line start =
            lines_find(p->lines, (struct place){ r->image, r->address });
        frame_name(name, sizeof(name), p->e, row);
        put_function(p, row + 1, name, start.file != NULL ? start.file : "");
    }
    put_function(p, v->count + 1, IDLE_FRAME, "");
    for (uint32_t i = 0; i < p->inlined.count; i++)
        put_function(p, v->count + 2 + i,
                     strchr(p->inlined.list[i].text, ' ') + 1, p->files[i]);
}

static uint64_t inlined_function(struct pprof *p, uint32_t image,
                                 const struct line_frame *frame)
{
    const char *name = frame->function != NULL ? frame->function : "?";
    size_t room = sizeof("4294967295 ") + strlen(name);
    char *text = enough(malloc(room));

    snprintf(text, room, "%u %s", image, name);
    uint32_t count = p->inlined.count, n = names_add(&p->inlined, text);
    free(text);
    if (n == count) {
        p->files = enough(realloc(p->files, (n + 1) * sizeof(*p->files)));
        p->files[n] = frame->line.file != NULL ? frame->line.file : "";
    }
    return p->e->view->count + 2 + n;
}

static void put_line(struct pprof *p, uint64_t function, uint32_t line)
{
    message_number(&p->inner, LINE_FUNCTION, function);
    message_number(&p->inner, LINE_LINE, line);
    message_add(&p->part, LOCATION_LINE, &p->inner);
}

// Writes a line for each function inlined at the place, the innermost first,
// then one for the containing function.
static void put_lines(struct pprof *p, uint64_t function, struct place place,
                      bool inlined)
{
    uint32_t count;
    const struct line_frame *f = lines_frames(p->lines, place, &count);

    if (!inlined)
        f += count - 1, count = 1;
    for (uint32_t i = 0; i + 1 < count; i++)
        put_line(p, inlined_function(p, place.image, &f[i]), f[i].line.line);
    put_line(p, function, f[count - 1].line.line);
}

static void put_location(struct pprof *p, uint64_t id, uint64_t function,
                         const struct place *place, bool inlined)
{
    message_number(&p->part, LOCATION_ID, id);
    if (place) {
        message_number(&p->part, LOCATION_MAPPING, place->image + 1);
        message_number(&p->part, LOCATION_ADDRESS, place->address);
        put_lines(p, function, *place, inlined);
    } else {
        put_line(p, function, 0);
    }
    message_add(&p->out, PROFILE_LOCATION, &p->part);
}

static uint64_t waiting_location(const struct pprof *p, uint64_t place)
{
    return p->places.count + 1 + place;
}

static void put_locations(struct pprof *p)
{
    const struct places *places = &p->places;
    uint32_t nodes = p->e->profile->samples.chains.count;
    const uint32_t *row_of = p->e->view->row_of;
    bool *written = enough(calloc(places->count + 1, sizeof(*written)));

    lines_ask(p->lines, places->list, places->count);
    for (uint32_t n = 1; n < nodes; n++) {
        uint64_t id = places_number(places, n);
        if (!written[id - 1])
            put_location(p, id, row_of[n] + 1, &node_of(p, n)->place,
                         p->e->inlined);
        written[id - 1] = true;
    }
    put_location(p, places->count + 1, p->e->view->count + 1, NULL, false);
    for (uint32_t i = 0; i < places->count; i++) {
        if (p->waits[i] != CHAIN_ROOT)
            put_location(p, waiting_location(p, i + 1), row_of[p->waits[i]] + 1,
                         &places->list[i], false);
    }
    free(written);
}

// --- samples ----------------------------------------------------------------

static void put_type(struct pprof *p, uint32_t field, const char *type,
                     const char *unit)
{
    add_text(p, &p->part, TYPE_TYPE, type);
    add_text(p, &p->part, TYPE_UNIT, unit);
    message_add(&p->out, field, &p->part);
}

static void put_label(struct pprof *p, const char *key, const char *text,
                      uint64_t number)
{
    add_text(p, &p->inner, LABEL_KEY, key);
    if (text)
        add_text(p, &p->inner, LABEL_TEXT, text);
    else
        message_number(&p->inner, LABEL_NUMBER, number);
    message_add(&p->part, SAMPLE_LABEL, &p->inner);
}

// An idle CPU waits in the containing function, not in the inlined function
// that follows the halt instruction.
static uint64_t waits_at(struct pprof *p, uint32_t node)
{
    uint64_t place = places_number(&p->places, node);

    p->waits[place - 1] = node;
    return waiting_location(p, place);
}

static void put_sample(struct pprof *p, const struct sample_count *c)
{
    bool idle = c->mode == MODE_IDLE;

    for (uint32_t n = c->chain; n != CHAIN_ROOT; n = node_of(p, n)->parent)
        message_element(&p->list, idle && n == c->chain
                                      ? waits_at(p, n)
                                      : places_number(&p->places, n));
    if (idle)
        message_element(&p->list, p->places.count + 1);
    message_add(&p->part, SAMPLE_LOCATIONS, &p->list);
    message_element(&p->list, c->samples);
    message_element(&p->list, c->period);
    message_add(&p->part, SAMPLE_VALUES, &p->list);
    if (!idle) {
        put_label(p, "program",
                  profile_program_name(p->e->profile, c->task, c->program), 0);
        put_label(p, "task", NULL, c->task);
        put_label(p, "thread", NULL, c->thread);
        put_label(
            p, "thread name",
            samples_thread_name(&p->e->profile->samples, c->task, c->thread),
            0);
    }
    put_label(p, "cpu", NULL, c->cpu);
    message_add(&p->out, PROFILE_SAMPLE, &p->part);
}

static void put_samples(struct pprof *p)
{
    const struct samples *s = &p->e->profile->samples;

    for (uint32_t i = 0; i < s->count; i++) {
        if (view_passes(&s->counts[i], p->e->filter))
            put_sample(p, &s->counts[i]);
    }
}

// Writes the header of all reports as comments.
static void put_comments(struct pprof *p)
{
    const struct perf_file *f = &p->e->profile->files[0];
    char *text = NULL, *rest;
    size_t size;
    FILE *out = enough(open_memstream(&text, &size));

    profile_header(out, p->e->profile, f, p->e->view);
    fclose(out);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        message_element(&p->list, number_of(p, line));
    message_add(&p->out, PROFILE_COMMENT, &p->list);
    free(text);
}

// --- the file ---------------------------------------------------------------

static void put_head(struct pprof *p)
{
    const struct perf_file *f = &p->e->profile->files[0];
    bool timed = frame_is_timed(p->e, 0);
    const char *type = timed ? "cpu" : p->e->profile->events.name[f->event];
    const char *unit = timed ? "nanoseconds" : "count";
    uint64_t rate = f->info.rate_hz;

    number_of(p, "");
    put_type(p, PROFILE_SAMPLE_TYPE, "samples", "count");
    put_type(p, PROFILE_SAMPLE_TYPE, type, unit);
    put_type(p, PROFILE_PERIOD_TYPE, type, unit);
    message_number(&p->out, PROFILE_PERIOD,
                   timed && rate > 0 ? NS_PER_SECOND / rate : 0);
    message_number(&p->out, PROFILE_DURATION_NS, f->info.elapsed_ns);
}

static void put_strings(struct pprof *p)
{
    for (uint32_t i = 0; i < p->texts.count; i++)
        message_bytes(&p->out, PROFILE_STRING, p->texts.list[i].text,
                      strlen(p->texts.list[i].text));
}

void export_pprof(struct export *e)
{
    struct pprof p = { .e = e, .lines = profile_lines(e->profile) };

    lines_need(p.lines);
    places_init(&p.places, e->profile);
    p.waits = enough(calloc(p.places.count + 1, sizeof(*p.waits)));
    put_head(&p);
    put_samples(&p);
    put_mappings(&p);
    put_locations(&p);
    put_functions(&p);
    put_comments(&p);
    put_strings(&p);
    gzip_write(e->out, p.out.bytes, p.out.size);
    names_free(&p.texts);
    names_free(&p.inlined);
    free(p.files);
    free(p.waits);
    places_free(&p.places);
    message_free(&p.out);
    message_free(&p.part);
    message_free(&p.list);
    message_free(&p.inner);
}
