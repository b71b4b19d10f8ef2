// strobe annotate: a function's instructions as objdump prints them, with the
// samples that fell on each.
#include "lines.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_SIZE 4096

struct settings {
    struct common common;
    const char *symbol, *program;
    bool source;
};

static struct settings settings;

static const struct tool_option options[] = {
    { 's', "symbol", "NAME", "This function (the one with most time)",
      .text = &settings.symbol },
    { 'p', "program", "PATH", "In this program; [kernel] for the kernel",
      .text = &settings.program },
    { 'S', "source", NULL, "With the lines of source between",
      .flag = &settings.source },
    FILTER_OPTIONS(settings.common),
    FILE_OPTIONS(settings.common),
    { 0 },
};
static const struct tool tool = { .usage = "strobe annotate [OPTIONS] FILE",
                                  .options = options };

// --- which function ---------------------------------------------------------

static bool is_wanted(const struct profile *p, const struct view_row *row)
{
    const struct image *m = &p->samples.images.list[row->image];

    if (!row->name)
        return false;
    if (settings.program && !image_is_called(m, settings.program))
        return false;
    return !settings.symbol ||
           (strlen(settings.symbol) == row->name_size &&
            memcmp(settings.symbol, row->name, row->name_size) == 0);
}

// Whether the function that --symbol names is inlined at `place`.
static bool is_inlined_at(struct profile *p, struct place place)
{
    uint32_t count;
    const struct line_frame *f = lines_frames(profile_lines(p), place, &count);

    for (uint32_t i = 0; i + 1 < count; i++) {
        if (f[i].function && strcmp(f[i].function, settings.symbol) == 0)
            return true;
    }
    return false;
}

// The function with most time that has --symbol inlined, or NULL.
static const struct view_row *function_around(struct profile *p,
                                              const struct view *v)
{
    const struct chains *chains = &p->samples.chains;
    const struct view_row *found = NULL;

    for (uint32_t n = 1; n < chains->count; n++) {
        const struct view_row *row = &v->rows[v->row_of[n]];
        if (row->self > 0 && row->name &&
            (!found || row->self_period > found->self_period) &&
            is_inlined_at(p, chains->nodes[n].place))
            found = row;
    }
    return found;
}

static const struct view_row *choose(struct profile *p, const struct view *v)
{
    for (uint32_t i = 0; i < v->count; i++) {
        if (v->rows[i].self > 0 && is_wanted(p, &v->rows[i]))
            return &v->rows[i];
    }
    const struct view_row *around =
        settings.symbol != NULL ? function_around(p, v) : NULL;
    if (around)
        fail(1,
             "%s: %s was inlined: its instructions are in other functions, "
             "as in %.*s: --symbol %.*s",
             p->path, settings.symbol, (int)around->name_size, around->name,
             (int)around->name_size, around->name);
    fail(1, "%s: no sample is in %s%s%s; strobe report lists the functions",
         p->path, settings.symbol != NULL ? settings.symbol : "any function",
         settings.program != NULL ? " of " : "",
         settings.program != NULL ? settings.program : "");
}

// --- its instructions -------------------------------------------------------

struct listing {
    const struct view *addresses;
    const struct view_row *function;
    uint32_t end;   // address past the function
    uint64_t found; // samples on the printed instructions
};

// The row of the samples at `address`, or NULL.
static const struct view_row *row_at(const struct listing *l, uint32_t address)
{
    for (uint32_t i = 0; i < l->addresses->count; i++) {
        const struct view_row *row = &l->addresses->rows[i];
        if (row->self == 0)
            break;
        if (row->image == l->function->image && row->address == address)
            return row;
    }
    return NULL;
}

// Whether `text` is an instruction of the function, such as
// " 8049010:<tab>push   %ebp". Stores the number that it begins with.
static bool is_instruction(const struct listing *l, const char *text,
                           uint32_t *address)
{
    char *end;
    unsigned long value = strtoul(text, &end, 16);

    *address = (uint32_t)value;
    return value >= l->function->address && value < l->end && end[0] == ':' &&
           end[1] == '\t';
}

// Makes a line of objdump's output printable, but keeps its tabs.
static void make_printable(char *line)
{
    for (char *part = line; part != NULL;) {
        char *end = part + strcspn(part, "\t\n"), was = *end;
        *end = '\0';
        printable(part);
        *end = was;
        part = was != '\0' ? end + 1 : NULL;
    }
}

static void print_line(struct listing *l, char *text)
{
    uint32_t address;

    make_printable(text);
    if (!is_instruction(l, text, &address)) {
        printf("%*s%s", 20, "", text);
        return;
    }
    const struct view_row *row = row_at(l, address);
    if (!row) {
        printf("%20s%s", "", text);
        return;
    }
    l->found += row->self;
    printf("%8" PRIu64 " %9.2f%%  %s", row->self,
           percent(row->self_period, l->function->self_period), text);
}

// Runs objdump in `root`: paths of Strobe's sources are relative to it.
static void list(struct listing *l, const char *path, const char *root)
{
    char from[32], to[32], text[LINE_MAX_SIZE], file[PATH_MAX];
    const char *argv[] = { "objdump",
                           "--no-show-raw-insn",
                           settings.source ? "-S" : "-d",
                           from,
                           to,
                           realpath(path, file),
                           NULL };
    struct coprocess objdump;
    bool begun = false;

    snprintf(from, sizeof(from), "--start-address=0x%x", l->function->address);
    snprintf(to, sizeof(to), "--stop-address=0x%x", l->end);
    if (coprocess_start(&objdump, argv, root) < 0)
        fail(1, "objdump: %s", strerror(errno));
    while (fgets(text, sizeof(text), objdump.from)) {
        begun = begun || strstr(text, ">:") != NULL; // skip the title
        if (begun)
            print_line(l, text);
    }
    int status = coprocess_end(&objdump);
    if (status == 127)
        fail(1, "objdump is not installed: it comes with binutils");
    if (status != 0)
        fail(1, "objdump could not read %s", path);
}

static void annotate(struct profile *p, const struct view *v,
                     const struct view_row *row, const struct view *addresses)
{
    const char *problem, *path;
    const struct symbol *symbol =
        images_symbol(&p->samples.images, row->image, row->address);
    struct listing l = { .addresses = addresses, .function = row };

    path = elves_path(&p->elves, &p->samples.images.list[row->image], &problem);
    if (!path || !symbol)
        fail(1, "%s: %s", p->samples.images.list[row->image].path, problem);
    char title[LINE_MAX_SIZE];
    snprintf(title, sizeof(title), "%.*s in %s", (int)row->name_size, row->name,
             path);
    put_printable(stdout, title);
    printf(": %" PRIu64 " samples, %.2f%% of all\n\n", row->self,
           percent(row->self_period, v->period));
    printf("%8s %10s  Instruction\n", "Samples", "Percent");
    l.end = symbol->end;
    list(&l, path, p->elves.root);
    if (l.found != row->self)
        printf("\n%" PRIu64 " samples are at addresses where no instruction "
               "begins\n",
               row->self - l.found);
}

int command_annotate(int argc, char *argv[])
{
    struct profile p;
    struct view v, addresses;
    int at = options_parse(&tool, argc, argv);
    struct view_filter filter = common_filter(&tool, &settings.common);

    settings.common.no_inline = true; // count by enclosing function
    profile_open(&p, one_file(&tool, argc, argv, at), &settings.common);
    profile_view(&v, &p, BY_SYMBOL, &filter);
    profile_complain(&p);
    const struct view_row *row = choose(&p, &v);
    profile_view(&addresses, &p, BY_ADDRESS, &filter);
    annotate(&p, &v, row, &addresses);
    view_free(&addresses);
    view_free(&v);
    profile_close(&p);
    return 0;
}
