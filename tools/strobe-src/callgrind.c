// The callgrind profile format (valgrind's manual, "Callgrind Format
// Specification"): self cost of each line of each function, and calls with
// their inclusive cost.
//
// An event has two costs: its samples, and their period. A call's count is the
// number of samples, of all events, with that call in their chain. If a
// function is on the stack more than once, only the call of the outermost one
// counts: the calls of a function then sum to its inclusive cost.
#include "export.h"
#include "lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define NO_FILE "???" // as callgrind writes it
#define NAME_SIZE 512

// The key of a cost: a function (a row of the view, or the row count for idle),
// one of its lines, and a callee, or NONE for self cost.
struct cost {
    uint32_t row, callee;
    struct line line;
    uint64_t calls; // samples of all events
};

// A cost in one event.
struct value {
    uint64_t samples, period;
};

struct callgrind {
    struct export *e;
    struct lines *lines;
    uint32_t idle; // the row number of idle
    struct cost *costs;
    uint32_t count;
    uint32_t events;
    struct value *values; // one for each cost and event
    struct value *totals; // one for each event
};

// --- listing the costs ------------------------------------------------------

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

// Returns the key of a node, at its line, with `callee` (NONE: self cost).
static struct cost cost_of(struct callgrind *g, uint32_t node, uint32_t callee)
{
    return (struct cost){ .row = row_of(g, node),
                          .callee = callee,
                          .line =
                              lines_find(g->lines, node_of(g, node)->place) };
}

static struct cost idle_cost(const struct callgrind *g, uint32_t callee)
{
    return (struct cost){ .row = g->idle, .callee = callee };
}

// Lists two keys for each node: its self cost, and its caller's call of it. The
// caller of an outermost node is idle. Duplicates are removed.
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
    g->values =
        enough(calloc((size_t)g->count * g->events + 1, sizeof(*g->values)));
}

// --- counting ---------------------------------------------------------------

static struct value *values_of(const struct callgrind *g, const struct cost *c)
{
    return &g->values[(size_t)(c - g->costs) * g->events];
}

static void add_value(struct value *v, const struct sample_count *c)
{
    v->samples += c->samples;
    v->period += c->period;
}

static void add(struct callgrind *g, struct cost key,
                const struct sample_count *c)
{
    struct cost *cost =
        bsearch(&key, g->costs, g->count, sizeof(*g->costs), compare);

    cost->calls += c->samples;
    add_value(&values_of(g, cost)[c->event], c);
}

// Adds a sample count to the calls of a chain, from the outermost on.
static void add_calls(struct callgrind *g, const struct sample_count *c,
                      uint32_t node, uint32_t *seen, uint32_t stamp)
{
    uint32_t parent = node_of(g, node)->parent, row = row_of(g, node);

    if (parent != CHAIN_ROOT) {
        add_calls(g, c, parent, seen, stamp); // depth: chain length
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
        if (!view_passes(c, g->e->filter))
            continue;
        add_value(&g->totals[c->event], c);
        if (c->chain == CHAIN_ROOT)
            continue;
        add(g, cost_of(g, c->chain, NONE), c);
        add_calls(g, c, c->chain, seen, i + 1);
    }
    free(seen);
}

// --- writing ----------------------------------------------------------------

// Writes text that may hold any bytes. Those below `least` become '?'.
static void put_text(const struct callgrind *g, const char *text, char least)
{
    char *copy = printable(enough(strdup(text)));

    for (const char *c = copy; *c != '\0'; c++)
        fputc((unsigned char)*c < least ? '?' : *c, g->e->out);
    free(copy);
}

static void put_name(const struct callgrind *g, const char *key,
                     const char *name)
{
    fprintf(g->e->out, "%s=", key);
    if (name[0] == '(') // would be read as a compressed name, "(ID)"
        fputc('_', g->e->out);
    put_text(g, name, ' ');
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

// Returns the line of a function's first instruction.
static struct line start_of(struct callgrind *g, uint32_t row)
{
    const struct view_row *r = &g->e->view->rows[row];

    if (row == g->idle)
        return (struct line){ 0 };
    return lines_find(g->lines, (struct place){ r->image, r->address });
}

// callgrind_annotate makes only some paths relative to its working directory.
// So paths in the project are written relative.
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
    fprintf(g->e->out, "calls=%" PRIu64 " %u\n", c->calls, start.line);
}

static void put_values(const struct callgrind *g, const struct value *list)
{
    for (uint32_t i = 0; i < g->events; i++)
        fprintf(g->e->out, " %" PRIu64 " %" PRIu64, list[i].samples,
                list[i].period);
    fputc('\n', g->e->out);
}

// callgrind_annotate expects a self cost in each file, besides calls.
static void put_nothing(const struct callgrind *g, uint32_t line)
{
    fprintf(g->e->out, "%u 0\n", line); // missing values count as 0
}

static void put_costs(struct callgrind *g)
{
    const struct cost *last = NULL;
    const char *file = NULL;

    for (uint32_t i = 0; i < g->count; i++) {
        const struct cost *c = &g->costs[i];
        if (c->calls == 0)
            continue;
        if (!last || last->row != c->row) {
            put_function(g, c->row);
            file = file_name(g, start_of(g, c->row).file);
            put_nothing(g, start_of(g, c->row).line);
        }
        last = c;
        // The line was inlined from another file.
        if (strcmp(file, file_name(g, c->line.file)) != 0) {
            file = file_name(g, c->line.file);
            put_name(g, "fi", file);
            put_nothing(g, c->line.line);
        }
        if (c->callee != NONE)
            put_call(g, c);
        fprintf(g->e->out, "%u", c->line.line);
        put_values(g, values_of(g, c));
    }
}

// Writes "Samples Nanoseconds" for each event, with the event's name before
// each of both if the file has several events.
static void put_events(const struct callgrind *g)
{
    const struct profile *p = g->e->profile;

    fputs("events:", g->e->out);
    for (uint32_t i = 0; i < g->events; i++) {
        const char *unit = frame_is_timed(g->e, i) ? "Nanoseconds" : "Events";
        const char *name = p->events.name[p->files[i].event];
        for (int period = 0; period < 2; period++) {
            fputc(' ', g->e->out);
            if (p->events.count > 1) {
                put_text(g, name, ' ' + 1);
                fputc('-', g->e->out);
            }
            fputs(period ? unit : "Samples", g->e->out);
        }
    }
    fputc('\n', g->e->out);
}

void export_callgrind(struct export *e)
{
    uint32_t events = e->profile->file_count;
    struct callgrind g = { .e = e, .idle = e->view->count, .events = events };

    g.lines = profile_lines(e->profile);
    lines_need(g.lines);
    list_costs(&g);
    g.totals = enough(calloc(events, sizeof(*g.totals)));
    count(&g);
    fprintf(e->out, "# callgrind format\nversion: 1\ncreator: strobe\n");
    fputs("cmd: ", e->out);
    put_text(&g, profile_title(e->profile), ' ');
    fputs("\npositions: line\n", e->out);
    put_events(&g);
    fputs("summary:", e->out);
    put_values(&g, g.totals);
    put_costs(&g);
    fputs("\ntotals:", e->out);
    put_values(&g, g.totals);
    free(g.costs);
    free(g.values);
    free(g.totals);
}
