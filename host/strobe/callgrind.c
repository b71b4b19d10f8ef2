// The callgrind profile format (valgrind's manual, "Callgrind Format
// Specification"): costs of each line of each function, and calls with what was
// spent inside.
//
// The number of calls is the samples that saw the call. Where a function is on
// the stack more than once the call of the outermost one counts, so that calls
// of a function sum up to what was spent in it and below.
#include "export.h"
#include "lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define NO_FILE "???" // as callgrind has it
#define NAME_SIZE 512

// Of a function (a row of the view; behind the last one: idle) at one of its
// lines: its own cost, or that of a call.
struct cost {
    uint32_t row, callee; // callee NONE: its own
    struct line line;
    uint64_t samples, period;
};

struct callgrind {
    struct export *e;
    struct lines lines;
    uint32_t idle; // the row that stands for it
    struct cost *costs;
    uint32_t count;
};

static void *enough(void *memory)
{
    if (memory == NULL)
        fail(1, "not enough memory for the export");
    return memory;
}

// --- which costs there are --------------------------------------------------

static int compare(const void *a, const void *b)
{
    const struct cost *x = a, *y = b;

    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->line.file != y->line.file)
        return x->line.file < y->line.file ? -1 : 1;
    if (x->line.line != y->line.line)
        return x->line.line < y->line.line ? -1 : 1;
    return x->callee < y->callee ? -1 : x->callee > y->callee;
}

static const struct chain_node *node_of(const struct callgrind *g, uint32_t n)
{
    return &g->e->profile->samples.chains.nodes[n];
}

static uint32_t row_of(const struct callgrind *g, uint32_t node)
{
    return g->e->view->row_of[node];
}

// Of a node, at its line: its own cost, or its call of `callee`.
static struct cost cost_of(struct callgrind *g, uint32_t node, uint32_t callee)
{
    return (struct cost){ .row = row_of(g, node),
                          .callee = callee,
                          .line =
                              lines_find(&g->lines, node_of(g, node)->place) };
}

static struct cost idle_cost(const struct callgrind *g, uint32_t callee)
{
    return (struct cost){ .row = g->idle, .callee = callee };
}

// Two for each node: its own, and that of its caller for it; and idle's.
static void list_costs(struct callgrind *g)
{
    uint32_t nodes = g->e->profile->samples.chains.count, n = 0;

    g->costs = enough(calloc(3 * (size_t)nodes, sizeof(*g->costs)));
    for (uint32_t i = 1; i < nodes; i++) {
        uint32_t parent = node_of(g, i)->parent;
        g->costs[n++] = cost_of(g, i, NONE);
        if (parent != CHAIN_ROOT)
            g->costs[n++] = cost_of(g, parent, row_of(g, i));
        else
            g->costs[n++] = idle_cost(g, row_of(g, i));
    }
    qsort(g->costs, n, sizeof(*g->costs), compare);
    for (uint32_t i = 0; i < n; i++) {
        if (g->count == 0 || compare(&g->costs[g->count - 1], &g->costs[i]))
            g->costs[g->count++] = g->costs[i];
    }
}

// --- counting ---------------------------------------------------------------

static void add(struct callgrind *g, struct cost key,
                const struct sample_count *c)
{
    struct cost *cost =
        bsearch(&key, g->costs, g->count, sizeof(*g->costs), compare);

    cost->samples += c->samples;
    cost->period += c->period;
}

// The calls of a chain, from the outermost on.
static void add_calls(struct callgrind *g, const struct sample_count *c,
                      uint32_t node, uint32_t *seen, uint32_t stamp)
{
    uint32_t parent = node_of(g, node)->parent, row = row_of(g, node);

    if (parent != CHAIN_ROOT) {
        add_calls(g, c, parent, seen, stamp); // as deep as a chain is
        if (seen[row] != stamp)
            add(g, cost_of(g, parent, row), c);
    } else if (c->mode == MODE_IDLE) {
        add(g, idle_cost(g, row), c);
    }
    seen[row] = stamp;
}

static void count(struct callgrind *g)
{
    const struct samples *s = &g->e->profile->samples;
    uint32_t *seen = enough(calloc(g->e->view->count + 1, sizeof(*seen)));

    for (uint32_t i = 0; i < s->count; i++) {
        const struct sample_count *c = &s->counts[i];
        if (!view_passes(c, g->e->filter) || c->chain == CHAIN_ROOT)
            continue;
        add(g, cost_of(g, c->chain, NONE), c);
        add_calls(g, c, c->chain, seen, i + 1);
    }
    free(seen);
}

// --- writing ----------------------------------------------------------------

static void put_name(const struct callgrind *g, const char *key,
                     const char *name)
{
    fprintf(g->e->out, "%s=", key);
    if (name[0] == '(') // would be the number of a name
        fputc('_', g->e->out);
    for (; *name != '\0'; name++)
        fputc((unsigned char)*name < ' ' ? '?' : *name, g->e->out);
    fputc('\n', g->e->out);
}

static const char *object_of(const struct callgrind *g, uint32_t row)
{
    return row == g->idle ? IDLE_FRAME : frame_file(g->e, row);
}

static void function_name(char *out, const struct callgrind *g, uint32_t row)
{
    if (row == g->idle)
        strcpy(out, IDLE_FRAME);
    else
        frame_name(out, NAME_SIZE, g->e, row);
}

// Where a function begins.
static struct line start_of(struct callgrind *g, uint32_t row)
{
    const struct view_row *r = &g->e->view->rows[row];

    if (row == g->idle)
        return (struct line){ 0 };
    return lines_find(&g->lines, (struct place){ r->image, r->address });
}

// callgrind_annotate shortens some paths, but not others, by the folder that it
// runs in: those of the project are short here.
static const char *file_name(const struct callgrind *g, const char *file)
{
    return file != NULL ? lines_short_path(g->e->profile, file) : NO_FILE;
}

static void put_function(struct callgrind *g, uint32_t row)
{
    char name[NAME_SIZE];

    function_name(name, g, row);
    fputc('\n', g->e->out);
    put_name(g, "ob", object_of(g, row));
    put_name(g, "fl", file_name(g, start_of(g, row).file));
    put_name(g, "fn", name);
}

static void put_call(struct callgrind *g, const struct cost *c)
{
    struct line start = start_of(g, c->callee);
    char name[NAME_SIZE];

    function_name(name, g, c->callee);
    put_name(g, "cob", object_of(g, c->callee));
    put_name(g, "cfi", file_name(g, start.file));
    put_name(g, "cfn", name);
    fprintf(g->e->out, "calls=%" PRIu64 " %u\n", c->samples, start.line);
}

// callgrind_annotate expects a cost of its own in each file, besides calls.
static void put_nothing(const struct callgrind *g, uint32_t line)
{
    fprintf(g->e->out, "%u 0 0\n", line);
}

static void put_costs(struct callgrind *g)
{
    const struct cost *last = NULL;
    const char *file = NULL;

    for (uint32_t i = 0; i < g->count; i++) {
        const struct cost *c = &g->costs[i];
        if (c->samples == 0)
            continue;
        if (last == NULL || last->row != c->row) {
            put_function(g, c->row);
            file = file_name(g, start_of(g, c->row).file);
            put_nothing(g, start_of(g, c->row).line);
        }
        last = c;
        // Of a line that was inlined from elsewhere.
        if (strcmp(file, file_name(g, c->line.file)) != 0) {
            file = file_name(g, c->line.file);
            put_name(g, "fi", file);
            put_nothing(g, c->line.line);
        }
        if (c->callee != NONE)
            put_call(g, c);
        fprintf(g->e->out, "%u %" PRIu64 " %" PRIu64 "\n", c->line.line,
                c->samples, c->period);
    }
}

void export_callgrind(struct export *e)
{
    struct callgrind g = { .e = e, .idle = e->view->count };
    const struct perf_file *f = &e->profile->file;

    lines_init(&g.lines, e->profile);
    list_costs(&g);
    count(&g);
    fprintf(e->out, "# callgrind format\nversion: 1\ncreator: strobe\n");
    if (f->command[0] != '\0')
        fprintf(e->out, "cmd: %s\n", f->command);
    fprintf(e->out, "positions: line\nevents: Samples %s\n",
            f->info.event[0] == '\0' ? "Nanoseconds" : "Events");
    fprintf(e->out, "summary: %" PRIu64 " %" PRIu64 "\n", e->view->samples,
            e->view->period);
    put_costs(&g);
    fprintf(e->out, "\ntotals: %" PRIu64 " %" PRIu64 "\n", e->view->samples,
            e->view->period);
    free(g.costs);
    lines_free(&g.lines);
}
