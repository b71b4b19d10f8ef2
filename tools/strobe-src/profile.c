// Reading a perf.data file, and what all reports print about it.
#include "lines.h"
#include "oracle.h"
#include "strobe.h"
#include "traced.h"

#include "user/libprofile/choose_event.h"
#include "user/libprofile/shares.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void keep_sample(void *arg, const struct timed_sample *s)
{
    struct profile *p = arg;

    if (p->count == p->room) {
        size_t room = p->room * 2 + 1024;
        void *list = realloc(p->list, room * sizeof(*p->list));
        if (!list)
            fail(1, "%s: not enough memory for its samples", p->path);
        p->list = list;
        p->room = room;
    }
    p->list[p->count++] = *s;
}

// Maps the file, sets p->events and returns the mapping.
static const void *load(struct profile *p, const char *path,
                        const struct common *c, size_t *size)
{
    *p = (struct profile){ .path = path };
    const void *bytes = file_map(path, size);
    if (!bytes)
        fail(1, "%s: %s", path, strerror(errno));
    if (oracle_is(bytes, *size)) {
        p->events.count = 1;
        strcpy(p->events.name[0], "instructions");
        return bytes;
    }
    if (calls_file_is(bytes, *size)) {
        if (!c->traced)
            fail(1,
                 "%s: a trace of calls: strobe report, tree, diff and export "
                 "read it",
                 path);
        p->events.count = 1;
        strcpy(p->events.name[0], "own time of calls");
        return bytes;
    }
    const char *problem = perf_read_events(&p->events, bytes, *size);
    if (problem)
        fail(1, "%s: %s", path, problem);
    return bytes;
}

// Reads the counts of the oracle as the only event.
static void read_oracle(struct profile *p, const void *bytes, size_t size)
{
    struct perf_file *f = &p->files[0];
    oracle_read(p, &p->oracle, bytes, size);
    strcpy(f->info.event, "instructions");
    strcpy(f->info.source, "oracle");
    f->chains = !p->oracle.flat;
    f->info.taken = f->samples = p->oracle.counted;
    p->exact = true;
}

// Gives each sample of the list its weight in the reports.
static void weigh(struct profile *p)
{
    for (uint32_t i = 0; i < p->file_count; i++) {
        const struct perf_file *f = &p->files[i];
        if (f->has_info &&
            shares_divide(&p->samples, i, &f->info, p->list, p->count) < 0)
            fail(1, "%s: not enough memory for its samples", p->path);
    }
}

// Reads `count` events starting with number `first`, and unmaps the file.
static void read_events(struct profile *p, const void *bytes, size_t size,
                        const struct common *c, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        p->files[i] = (struct perf_file){ .event = first + i,
                                          .sample = keep_sample,
                                          .arg = p };
    p->file_count = count;
    if (samples_init(&p->samples, NULL) < 0)
        fail(1, "not enough memory");
    p->samples.images.find = elves_read;
    p->samples.images.find_arg = &p->elves;
    elves_init(&p->elves, c->kernel, c->folders);
    const char *problem = NULL;
    if (oracle_is(bytes, size))
        read_oracle(p, bytes, size);
    else if (calls_file_is(bytes, size))
        traced_read(p, bytes, size);
    else
        problem = perf_read(p->files, count, &p->samples, bytes, size);
    if (problem)
        fail(1, "%s: %s", p->path, problem);
    weigh(p);
    file_unmap(bytes, size);
    if (!c->no_inline && !p->traced)
        inlines_expand(p, profile_lines(p));
    if ((p->exact || p->traced) &&
        (p->samples.uncounted || p->samples.chains.cut))
        fail(1, "%s: too many paths, or not enough memory", p->path);
}

void profile_open(struct profile *p, const char *path, const struct common *c)
{
    size_t size;
    const void *bytes = load(p, path, c, &size);

    read_events(p, bytes, size, c, choose_event(&p->events, path, c->event), 1);
}

void profile_open_all(struct profile *p, const char *path,
                      const struct common *c)
{
    size_t size;
    const void *bytes = load(p, path, c, &size);

    if (!c->event)
        read_events(p, bytes, size, c, 0, p->events.count);
    else
        read_events(p, bytes, size, c, choose_event(&p->events, path, c->event),
                    1);
}

void profile_each(const char *path, const struct common *c,
                  void (*show)(struct profile *p, void *arg), void *arg)
{
    uint32_t count = 1;
    bool *complained = NULL;

    for (uint32_t i = 0; i < count; i++) {
        struct profile p;
        size_t size;
        const void *bytes = load(&p, path, c, &size);
        if (!c->event)
            count = p.events.count;
        read_events(&p, bytes, size, c,
                    !c->event ? i : choose_event(&p.events, path, c->event), 1);
        if (i > 0)
            putchar('\n');
        else
            complained = calloc(p.samples.images.count, sizeof(*complained));
        p.complained = complained; // each event has the same images
        show(&p, arg);
        profile_close(&p);
    }
    free(complained);
}

struct lines *profile_lines(struct profile *p)
{
    if (p->lines)
        return p->lines;
    p->lines = malloc(sizeof(*p->lines));
    if (!p->lines)
        fail(1, "not enough memory for the source lines");
    lines_init(p->lines, p);
    return p->lines;
}

void profile_close(struct profile *p)
{
    if (p->lines)
        lines_free(p->lines);
    free(p->lines);
    inlines_free(&p->inlines);
    samples_free(&p->samples);
    elves_free(&p->elves);
    free(p->list);
    free(p->oracle.owners);
    traced_free(p->traced);
}

// --- header -----------------------------------------------------------------

// In the file of a run that was cut off, samples may follow the writer's last
// statistics. Reports their number.
static void print_later(FILE *out, const struct perf_file *f)
{
    uint64_t reported =
        f->info.taken > f->info.lost ? f->info.taken - f->info.lost : 0;

    if (f->has_info && f->samples > reported)
        fprintf(out,
                "Counts:  of %.3f s, the last ones in the file; "
                "%" PRIu64 " samples are later\n",
                f->info.elapsed_ns / 1e9, f->samples - reported);
}

void profile_header(FILE *out, const struct profile *p,
                    const struct perf_file *f, const struct view *v)
{
    fputs("Profile ", out);
    put_printable(out, p->path);
    fputs(f->command[0] != '\0' ? " of " : "", out);
    put_printable(out, f->command);
    if (p->exact)
        fputc('\n', out);
    else
        fprintf(out, ", %.3f s\n", f->info.elapsed_ns / 1e9);
    if (f->version[0] != '\0') {
        fputs("Kernel:  ", out);
        put_printable(out, f->version);
        fputc('\n', out);
    }
    if (p->traced) {
        traced_header(out, p->traced);
        return;
    }
    header_print_event(out, p->events.name[f->event], f->event,
                       p->events.count);
    if (f->cut)
        fprintf(out,
                "Cut off: the file has no end; %" PRIu64
                " records are whole, %" PRIu64 " bytes of another are not\n",
                f->records, f->cut_bytes);
    print_later(out, f);
    if (f->has_info)
        header_print(out, &f->info, &f->asked, &p->samples, f - p->files,
                     v->unknown);
    else if (p->exact)
        fprintf(out,
                "Samples: %" PRIu64
                " executed instructions, each counted once\n",
                p->oracle.counted);
    else
        fprintf(out,
                "Samples: %" PRIu64 " taken, %" PRIu64
                " lost; the file does not say how they were taken\n",
                f->info.taken, f->info.lost);
    if (f->is_remote)
        header_print_remote(out, &f->remote, f->info.cpus);
    fputc('\n', out);
}

const char *profile_title(const struct profile *p)
{
    const char *command = p->files[0].command;

    return command[0] != '\0' ? command : p->path;
}

void profile_complain(struct profile *p)
{
    uint32_t images = profile_images(p);

    for (uint32_t i = 0; i < images; i++) {
        const struct image *m = &p->samples.images.list[i];
        if (i == IMAGE_UNKNOWN || i == IMAGE_CUT || !m->loaded ||
            (p->complained != NULL && p->complained[i]))
            continue;
        if (p->complained)
            p->complained[i] = true;
        if (m->problem)
            complain("%s: %s; addresses are shown instead. Name the folder of "
                     "the right build with --dir (of the kernel with -k)",
                     m->path, m->problem);
        else if (m->build_id_size == 0 && i != IMAGE_VDSO)
            complain("%s: has no build id: its file is found by its "
                     "name",
                     m->path);
    }
}

void profile_complain_calls(const struct profile *p)
{
    if (p->oracle.flat)
        complain("%s: flat counts, without callers: tools/vm --oracle FILE "
                 "counts with them",
                 p->path);
    else if (!p->files[0].chains)
        complain("%s: its samples have no callers: profile -g -o FILE and "
                 "sprofile -g -o FILE record them",
                 p->path);
}

uint32_t profile_images(const struct profile *p)
{
    return p->inlines.expanded ? p->inlines.first_image
                               : p->samples.images.count;
}

// --- names ------------------------------------------------------------------

const char *profile_program_name(const struct profile *p, uint32_t task,
                                 uint32_t program)
{
    return task != 0 ? programs_name(&p->samples.programs, program) : "kernel";
}

void row_name(char *out, size_t size, const struct profile *p,
              const struct view_row *row, uint32_t alone)
{
    const char *path = p->samples.images.list[row->image].path;
    bool nameless = !row->name && row->address == 0;
    int n = row->name
                ? snprintf(out, size, "%.*s", (int)row->name_size, row->name)
            : nameless ? snprintf(out, size, "[unknown]")
                       : snprintf(out, size, "0x%x", row->address);

    if (inlines_image(&p->inlines, row->image) == alone || n < 0 ||
        (size_t)n >= size || (nameless && row->image == IMAGE_UNKNOWN))
        return;
    bool marked = path[0] == '[';
    snprintf(out + n, size - n, " %s%s%s", marked ? "" : "[", path,
             marked ? "" : "]");
}

bool image_is_called(const struct image *m, const char *name)
{
    const char *slash = strrchr(m->path, '/');

    return strcmp(m->path, name) == 0 ||
           (slash != NULL && strcmp(slash + 1, name) == 0);
}

uint32_t profile_only_image(const struct profile *p)
{
    uint32_t only = IMAGE_NONE;

    for (uint32_t i = 0; i < p->samples.count; i++) {
        const struct sample_count *c = &p->samples.counts[i];
        if (c->mode == MODE_IDLE || c->image == only)
            continue;
        if (only != IMAGE_NONE)
            return IMAGE_NONE;
        only = c->image;
    }
    return only;
}

// --- views ------------------------------------------------------------------

void profile_view(struct view *v, struct profile *p, enum view_by by,
                  const struct view_filter *filter)
{
    if (view_make(v, &p->samples, by, filter) < 0)
        fail(1, "not enough memory for the report");
    if (v->samples == 0 && p->samples.total > 0 && !filter->by_event)
        complain("%s: no samples match --task, --cpu and --busy; report --by "
                 "task and --by cpu list them",
                 p->path);
}

void profile_tree(struct tree *t, struct profile *p, const struct view *v,
                  const struct view_filter *filter, bool inverted)
{
    if (tree_make(t, v, &p->samples, filter, inverted) < 0)
        fail(1, "not enough memory for the tree");
}
