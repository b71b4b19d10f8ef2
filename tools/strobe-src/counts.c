// strobe counts FILE: samples, or the instructions of an oracle's file, as rows
// for scripts (tools/truth), with tabs between the columns:
//
//     COUNT MODE TASK INDEX PROGRAM FUNCTION
//
// MODE is user, kernel, irq or idle. INDEX numbers the programs in the order in
// which they began, -1: none. With --stacks FUNCTION is the whole path, as in
// folded stacks, and the rows of an oracle's file are in the order of the first
// execution of their paths.
#include "export.h"
#include "names.h"

#include <inttypes.h>
#include <stdlib.h>

static struct common common;
static bool stacks;
static const struct tool_option options[] = {
    { 's', "stacks", NULL, "Paths of calls, not functions", .flag = &stacks },
    FILTER_OPTIONS(common),
    INLINE_OPTION(common),
    FILE_OPTIONS(common),
    { 0 },
};
static const struct tool tool = {
    .usage = "strobe counts [OPTIONS] FILE",
    .options = options,
    .notes = "Columns, separated by tabs: samples (or instructions), mode, "
             "task, program's\nnumber and name, function\n",
};

static const char *const mode_names[] = { [MODE_USER] = "user",
                                          [MODE_KERNEL] = "kernel",
                                          [MODE_IRQ] = "irq",
                                          [MODE_IDLE] = "idle" };

// Sums by the text of a row.
struct sums {
    struct names texts;
    uint64_t *counts;
    uint32_t room;
};

static void add(struct sums *s, const char *text, uint64_t count)
{
    uint32_t i = names_add(&s->texts, text);
    if (s->texts.count > s->room) {
        uint32_t room = 2 * s->room + 256;
        s->counts = enough(realloc(s->counts, room * sizeof(*s->counts)));
        for (; s->room < room; s->room++)
            s->counts[s->room] = 0;
    }
    s->counts[i] += count;
}

static const struct profile *sorted; // qsort passes no argument
static const uint32_t *sorted_rows;

// A path's chain is numbered when it is first executed.
static uint32_t path_of(const struct sample_count *c)
{
    return c->chain == CHAIN_ROOT
               ? 0
               : sorted->samples.chains.nodes[c->chain].parent;
}

static uint32_t function_of(const struct sample_count *c)
{
    return c->chain == CHAIN_ROOT ? 0 : sorted_rows[c->chain];
}

// Whether both have the same row, if the paths are the same.
static bool is_same(const struct sample_count *a, const struct sample_count *b)
{
    return path_of(a) == path_of(b) && function_of(a) == function_of(b) &&
           a->mode == b->mode && a->task == b->task && a->program == b->program;
}

static int in_order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct sample_count *at_x = &sorted->samples.counts[x],
                              *at_y = &sorted->samples.counts[y];
    if (path_of(at_x) != path_of(at_y))
        return path_of(at_x) < path_of(at_y) ? -1 : 1;
    if (function_of(at_x) != function_of(at_y))
        return function_of(at_x) < function_of(at_y) ? -1 : 1;
    return x < y ? -1 : x > y;
}

// Returns the counts that pass the filter, in the order of paths.
static uint32_t *order(const struct profile *p, const struct view *v,
                       const struct view_filter *filter, uint32_t *count)
{
    uint32_t *list = enough(malloc((p->samples.count + 1) * sizeof(*list)));
    *count = 0;
    for (uint32_t i = 0; i < p->samples.count; i++) {
        if (view_passes(&p->samples.counts[i], filter))
            list[(*count)++] = i;
    }
    sorted = p;
    sorted_rows = v->row_of;
    qsort(list, *count, sizeof(*list), in_order);
    return list;
}

static void put_row(const struct export *e, const struct sample_count *c)
{
    int32_t program = c->program == PROGRAM_NONE ? -1 : (int32_t)c->program;
    fprintf(e->out, "%s\t%u\t%d\t%s\t", mode_names[c->mode], c->task, program,
            profile_program_name(e->profile, c->task, c->program));
    if (stacks)
        folded_stack(e, c->chain);
    else if (c->chain != CHAIN_ROOT)
        folded_frame(e, c->chain);
    fputc('\0', e->out);
    if (fflush(e->out) != 0)
        fail(1, "not enough memory");
}

static void print_counts(struct profile *p, const struct view *v,
                         const struct view_filter *filter)
{
    struct sums sums = { 0 };
    char *text = NULL;
    size_t size = 0;
    uint32_t count;
    uint32_t *list = order(p, v, filter, &count);
    struct export e = { .profile = p,
                        .view = v,
                        .filter = filter,
                        .out = enough(open_memstream(&text, &size)),
                        .inlined = !common.no_inline };
    const struct sample_count *all = p->samples.counts;
    for (uint32_t i = 0; i < count;) {
        const struct sample_count *first = &all[list[i]];
        uint64_t samples = 0;
        for (; i < count && is_same(first, &all[list[i]]); i++)
            samples += all[list[i]].samples;
        rewind(e.out);
        put_row(&e, first);
        add(&sums, text, samples);
    }
    for (uint32_t i = 0; i < sums.texts.count; i++)
        printf("%" PRIu64 "\t%s\n", sums.counts[i], sums.texts.list[i].text);
    fclose(e.out);
    free(text);
    free(list);
    free(sums.counts);
    names_free(&sums.texts);
}

int command_counts(int argc, char *argv[])
{
    int at = options_parse(&tool, argc, argv);
    struct view_filter filter = common_filter(&tool, &common);
    struct profile p;
    struct view v;
    profile_open(&p, one_file(&tool, argc, argv, at), &common);
    profile_view(&v, &p, BY_SYMBOL, &filter);
    profile_complain(&p);
    print_counts(&p, &v, &filter);
    view_free(&v);
    profile_close(&p);
    return EXIT_SUCCESS;
}
