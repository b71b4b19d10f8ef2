// strobe export: the profile in the formats of other tools.
#include "export.h"
#include "html.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    struct common common;
    const char *out, *program;
    bool html, folded, speedscope, gmon, callgrind;
};

static struct settings settings;

static const struct tool_option options[] = {
    { 0, "html", NULL, "A page with a flame graph, for any browser",
      .flag = &settings.html },
    { 0, "folded", NULL, "Stacks as lines, for flamegraph.pl or speedscope",
      .flag = &settings.folded },
    { 0, "speedscope", NULL, "JSON for speedscope, a profile each thread",
      .flag = &settings.speedscope },
    { 0, "gmon", NULL, "gmon.out of one program, for gprof",
      .flag = &settings.gmon },
    { 0, "callgrind", NULL, "For callgrind_annotate and kcachegrind",
      .flag = &settings.callgrind },
    { 'o', "output", "OUT", "Written here (standard output)",
      .text = &settings.out },
    { 'p', "program", "PATH", "Which program's gmon.out; [kernel] the kernel's",
      .text = &settings.program },
    FILTER_OPTIONS(settings.common),
    FILE_OPTIONS(settings.common),
    { 0 },
};
static const struct tool tool = { .usage =
                                      "strobe export --FORMAT [OPTIONS] FILE",
                                  .options = options };

struct format {
    const bool *chosen;
    void (*write)(struct export *e);
};

// What is to be seen is chosen in the page.
static void write_html(struct export *e)
{
    const struct common *c = &settings.common;

    if (c->task != 0 || c->cpu != NULL || c->busy)
        complain("the page has all samples: choose there what it shows");
    export_html(e->profile, e->out);
}

static const struct format formats[] = {
    { &settings.html, write_html },
    { &settings.folded, export_folded },
    { &settings.speedscope, export_speedscope },
    { &settings.gmon, export_gmon },
    { &settings.callgrind, export_callgrind },
};

static const struct format *choose(void)
{
    const struct format *chosen = NULL;
    unsigned count = 0;

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (*formats[i].chosen) {
            chosen = &formats[i];
            count++;
        }
    }
    if (count == 1)
        return chosen;
    complain(count == 0 ? "which format?" : "one format at a time");
    options_wrong(&tool);
}

static FILE *open_output(void)
{
    if (settings.out == NULL)
        return stdout;
    FILE *out = fopen(settings.out, "w");
    if (out == NULL)
        fail(1, "%s: %s", settings.out, strerror(errno));
    return out;
}

static void close_output(FILE *out)
{
    bool bad = fflush(out) != 0 || ferror(out);

    if (out != stdout && fclose(out) != 0)
        bad = true;
    if (bad)
        fail(1, "%s: %s", settings.out != NULL ? settings.out : "writing",
             strerror(errno));
}

int command_export(int argc, char *argv[])
{
    struct profile p;
    struct view v;
    int at = options_parse(&tool, argc, argv);
    const struct format *format = choose();
    struct view_filter filter = common_filter(&tool, &settings.common);

    profile_open(&p, one_file(&tool, argc, argv, at), &settings.common);
    profile_view(&v, &p, BY_SYMBOL, &filter);
    profile_complain(&p);
    struct export e = { &p, &v, &filter, settings.program, NULL };
    e.out = open_output();
    format->write(&e);
    close_output(e.out);
    view_free(&v);
    profile_close(&p);
    return 0;
}

// --- names ------------------------------------------------------------------

void frame_name(char *out, size_t size, const struct export *e, uint32_t row)
{
    const struct view_row *r = &e->view->rows[row];

    if (r->name != NULL)
        snprintf(out, size, "%.*s", (int)r->name_size, r->name);
    else if (r->address != 0)
        snprintf(out, size, "0x%x", r->address);
    else
        snprintf(out, size, "[unknown]");
}

const char *frame_file(const struct export *e, uint32_t row)
{
    return e->profile->samples.images.list[e->view->rows[row].image].path;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static bool is_called(const struct image *m, const char *name)
{
    return strcmp(m->path, name) == 0 || strcmp(base_name(m->path), name) == 0;
}

static uint32_t busiest_image(const struct export *e)
{
    const struct images *images = &e->profile->samples.images;
    uint64_t *samples = calloc(images->count, sizeof(*samples));
    uint32_t best = IMAGE_NONE;

    if (samples == NULL)
        fail(1, "not enough memory for the export");
    for (uint32_t i = 0; i < e->view->count; i++)
        samples[e->view->rows[i].image] += e->view->rows[i].self;
    for (uint32_t i = IMAGES_FIXED; i < images->count; i++) {
        if (samples[i] > 0 &&
            (best == IMAGE_NONE || samples[i] > samples[best]))
            best = i;
    }
    free(samples);
    if (best == IMAGE_NONE)
        fail(1,
             "%s: there are no samples of a program in it; --program "
             "'[kernel]' takes the kernel's",
             e->profile->path);
    return best;
}

uint32_t export_image(const struct export *e)
{
    const struct images *images = &e->profile->samples.images;

    if (e->program == NULL)
        return busiest_image(e);
    for (uint32_t i = 0; i < images->count; i++) {
        if (i != IMAGE_UNKNOWN && is_called(&images->list[i], e->program))
            return i;
    }
    complain("--program %s: there is no such program in %s. It has:",
             e->program, e->profile->path);
    for (uint32_t i = 0; i < images->count; i++) {
        if (i != IMAGE_UNKNOWN)
            fprintf(stderr, "    %s\n", images->list[i].path);
    }
    exit(1);
}
