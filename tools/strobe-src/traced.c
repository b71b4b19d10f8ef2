#include "traced.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// --- names ------------------------------------------------------------------

static const char *name_of(void *arg, uint32_t address)
{
    struct profile *p = arg;
    struct names *names = &p->traced->names;
    char text[512];

    if (call_is_root(address))
        return call_root_name(address);
    const struct symbol *s =
        images_symbol(&p->samples.images, IMAGE_KERNEL, address);
    if (s)
        snprintf(text, sizeof(text), "%.*s", (int)s->name_size, s->name);
    else
        snprintf(text, sizeof(text), "0x%x", address);
    return names_keep(names, text);
}

// --- reading ----------------------------------------------------------------

static enum sample_mode mode_of(uint32_t root)
{
    return root == CALLS_ROOT_INTERRUPTS ? MODE_IRQ
           : root == CALLS_ROOT_IDLE     ? MODE_IDLE
                                         : MODE_KERNEL;
}

static void keep(struct profile *p, const struct sample_count *c)
{
    if (p->count == p->room) {
        p->room = p->room * 2 + 1024;
        p->list = enough(realloc(p->list, p->room * sizeof(*p->list)));
    }
    p->list[p->count++] = (struct timed_sample){
        .period = c->period,
        .chain = c->chain,
        .program = PROGRAM_NONE,
        .cpu = c->cpu,
        .mode = c->mode,
    };
}

// A root's own time is that outside of the functions: it is left out.
static void add_path(struct profile *p, const struct call_path *path,
                     uint32_t chain, enum sample_mode mode, uint32_t cpu)
{
    struct sample_count c = {
        .chain = chain,
        .program = PROGRAM_NONE,
        .cpu = (uint16_t)cpu,
        .mode = mode,
        .samples = path->calls,
        .period = (uint64_t)call_ns(&p->traced->printing, path->own),
    };

    if (!c.samples && !c.period)
        return;
    samples_count(&p->samples, &c);
    keep(p, &c);
}

static void add_cpu(struct profile *p, uint32_t cpu)
{
    struct traced *t = p->traced;
    struct call_paths paths;
    const char *problem =
        call_paths_merge(&paths, &t->file.header.info, t->file.nodes, (int)cpu);
    if (problem)
        fail(1, "%s: %s", p->path, problem);
    uint32_t *chain = enough(calloc(paths.count + 1, sizeof(*chain)));
    uint32_t *root = enough(calloc(paths.count + 1, sizeof(*root)));
    for (uint32_t i = 0; i < paths.count; i++) {
        const struct call_path *path = &paths.list[i];
        root[i] = path->parent == i ? path->function : root[path->parent];
        chain[i] = CHAIN_ROOT;
        if (path->parent == i)
            continue;
        chain[i] = chains_add(&p->samples.chains, chain[path->parent],
                              (struct place){ IMAGE_KERNEL, path->function });
        add_path(p, path, chain[i], mode_of(root[i]), cpu);
    }
    free(chain);
    free(root);
    call_paths_free(&paths);
}

static void read_paths(struct profile *p)
{
    struct traced *t = p->traced;
    const struct calls_info *info = &t->file.header.info;
    const char *problem = call_paths_merge(&t->paths, info, t->file.nodes, -1);
    uint32_t cpus = 0;

    if (problem)
        fail(1, "%s: %s", p->path, problem);
    for (uint32_t i = 0; i < info->records; i++) {
        if (t->file.nodes[i].cpu > UINT16_MAX)
            fail(1, "%s: a record of CPU %u", p->path, t->file.nodes[i].cpu);
        if (t->file.nodes[i].cpu >= cpus)
            cpus = t->file.nodes[i].cpu + 1;
    }
    for (uint32_t cpu = 0; cpu < cpus; cpu++)
        add_cpu(p, cpu);
}

// The records outlive the file's mapping.
static void copy_records(struct calls_file *f)
{
    const struct calls_file_header *h = &f->header;
    size_t size = (size_t)h->info.records * h->record_size;
    const void *from = f->nodes ? (const void *)f->nodes : f->arcs;
    void *copy = memcpy(enough(malloc(size + 1)), from, size);

    if (f->nodes)
        f->nodes = copy;
    else
        f->arcs = copy;
}

void traced_read(struct profile *p, const void *bytes, size_t size)
{
    struct traced *t = p->traced = enough(calloc(1, sizeof(*t)));
    const char *problem = calls_file_read(&t->file, bytes, size);
    if (problem)
        fail(1, "%s: %s", p->path, problem);
    const struct calls_file_header *h = &t->file.header;
    struct image *kernel = &p->samples.images.list[IMAGE_KERNEL];
    struct perf_file *f = &p->files[0];

    copy_records(&t->file);
    memcpy(kernel->build_id, h->build_id, h->build_id_size);
    kernel->build_id_size = h->build_id_size;
    snprintf(f->command, sizeof(f->command), "%s", h->command);
    printable(f->command);
    snprintf(f->version, sizeof(f->version), "%.64s", h->kernel);
    strcpy(f->info.source, "calls");
    f->chains = t->file.nodes != NULL;
    t->printing = (struct call_printing){
        .out = stdout,
        .sort = CALLS_BY_TIME,
        .show_all = "--rows 0",
        .tsc_hz = h->info.tsc_hz,
        .name = name_of,
        .arg = p,
    };
    f->info.elapsed_ns = (uint64_t)call_ns(&t->printing, h->info.elapsed);
    if (t->file.nodes) {
        read_paths(p);
        return;
    }
    t->arcs =
        enough(call_arcs_merge(&h->info, t->file.arcs, -1, &t->arc_count));
}

void traced_free(struct traced *t)
{
    if (!t)
        return;
    free((void *)t->file.nodes);
    free((void *)t->file.arcs);
    free(t->arcs);
    call_paths_free(&t->paths);
    names_free(&t->names);
    free(t);
}

void traced_header(FILE *out, const struct traced *t)
{
    struct call_printing c = t->printing;

    c.out = out;
    call_print_header(&c, &t->file.header.info);
}

bool traced_is(const char *path)
{
    size_t size;
    const void *bytes = file_map(path, &size);
    if (!bytes)
        fail(1, "%s: %s", path, strerror(errno));
    bool is = calls_file_is(bytes, size);

    file_unmap(bytes, size);
    return is;
}

// --- report and tree --------------------------------------------------------

static void check_filter(const struct profile *p, const struct view_filter *f)
{
    if (f->by_task)
        fail(USAGE_STATUS,
             "%s: its calls are not by task: cprofile -t TASK traces one",
             p->path);
}

struct call_paths traced_paths(const struct profile *p,
                               const struct view_filter *filter)
{
    const struct traced *t = p->traced;
    struct call_paths paths;

    check_filter(p, filter);
    if (!t->file.nodes)
        fail(1,
             "%s: of cprofile --arcs, without times and paths: strobe "
             "report shows its arcs",
             p->path);
    const char *problem =
        call_paths_merge(&paths, &t->file.header.info, t->file.nodes,
                         filter->by_cpu ? (int)filter->cpu : -1);
    if (problem)
        fail(1, "%s: %s", p->path, problem);
    return paths;
}

void traced_report(struct profile *p, const struct view_filter *filter,
                   uint32_t rows)
{
    struct call_printing c = p->traced->printing;

    c.rows = rows;
    images_load(&p->samples.images, IMAGE_KERNEL);
    profile_complain(p);
    profile_header(stdout, p, p->files, NULL);
    if (p->traced->file.arcs) {
        check_filter(p, filter);
        call_print_arcs(&c, p->traced->arcs, p->traced->arc_count);
        return;
    }
    struct call_paths paths = traced_paths(p, filter);
    call_print_functions(&c, &paths);
    call_paths_free(&paths);
}

void traced_tree(struct profile *p, const struct view_filter *filter,
                 double min)
{
    struct call_printing c = p->traced->printing;
    struct call_paths paths = traced_paths(p, filter);

    c.min = min;
    c.show_all = "--min 0";
    images_load(&p->samples.images, IMAGE_KERNEL);
    profile_complain(p);
    profile_header(stdout, p, p->files, NULL);
    call_print_tree(&c, &paths);
    call_paths_free(&paths);
}
