// strobe lines and strobe report --by line: samples by source line.
#include "lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_WIDTH 60

struct row {
    struct line line;
    uint64_t self, total, self_period, total_period;
};

struct rows {
    struct row *list;
    uint32_t count;
    uint32_t *of_node; // row of each chain node
};

// --- gathering --------------------------------------------------------------

static int by_line(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int files = strcmp(x->line.file, y->line.file);

    if (files != 0)
        return files;
    return x->line.line < y->line.line ? -1 : x->line.line > y->line.line;
}

// Code without line numbers counts as line 0 of its function.
static struct line line_of(struct lines *l, const struct view *v, uint32_t node)
{
    struct profile *p = l->profile;
    struct line line = lines_find(l, p->samples.chains.nodes[node].place);
    char name[512];

    if (line.file)
        return line;
    row_name(name, sizeof(name), p, &v->rows[v->row_of[node]], IMAGE_NONE);
    return (struct line){ lines_file(l, name), 0 };
}

static uint32_t find_row(const struct rows *r, struct line line)
{
    struct row key = { .line = line };
    struct row *found =
        bsearch(&key, r->list, r->count, sizeof(*r->list), by_line);

    return (uint32_t)(found - r->list);
}

// Makes the rows, sorted by file and line, then finds the row of each node.
static void make_rows(struct rows *r, struct lines *l, const struct view *v)
{
    uint32_t nodes = l->profile->samples.chains.count, kept = 0;

    r->list = enough(calloc(nodes, sizeof(*r->list)));
    r->of_node = enough(calloc(nodes, sizeof(*r->of_node)));
    for (uint32_t n = 1; n < nodes; n++)
        r->list[n - 1].line = line_of(l, v, n);
    qsort(r->list, nodes - 1, sizeof(*r->list), by_line);
    for (uint32_t i = 0; i + 1 < nodes; i++) {
        if (kept == 0 || by_line(&r->list[kept - 1], &r->list[i]) != 0)
            r->list[kept++] = r->list[i];
    }
    r->count = kept;
    for (uint32_t n = 1; n < nodes; n++)
        r->of_node[n] = find_row(r, line_of(l, v, n));
}

static void count(struct rows *r, const struct samples *s,
                  const struct view_filter *filter)
{
    uint32_t *seen = enough(calloc(r->count + 1, sizeof(*seen)));

    for (uint32_t i = 0; i < s->count; i++) {
        const struct sample_count *c = &s->counts[i];
        if (!view_passes(c, filter) || c->chain == CHAIN_ROOT)
            continue;
        r->list[r->of_node[c->chain]].self += c->samples;
        r->list[r->of_node[c->chain]].self_period += c->period;
        for (uint32_t n = c->chain; n != CHAIN_ROOT;
             n = s->chains.nodes[n].parent) {
            if (seen[r->of_node[n]] == i + 1)
                continue;
            seen[r->of_node[n]] = i + 1;
            r->list[r->of_node[n]].total += c->samples;
            r->list[r->of_node[n]].total_period += c->period;
        }
    }
    free(seen);
}

static int by_self(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->self_period != y->self_period)
        return x->self_period < y->self_period ? 1 : -1;
    if (x->self != y->self)
        return x->self < y->self ? 1 : -1;
    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    return by_line(a, b);
}

// --- printing ---------------------------------------------------------------

// Reads a source line, without its indentation; "" if it cannot be read.
static void source_text(char *out, size_t size, const struct line *line)
{
    FILE *f = line->line > 0 ? fopen(line->file, "r") : NULL;
    char text[1024] = "";

    out[0] = '\0';
    if (!f)
        return;
    uint32_t at = 0;
    while (at < line->line && fgets(text, sizeof(text), f))
        at += strchr(text, '\n') != NULL;
    fclose(f);
    if (at < line->line)
        return;
    char *begin = text + strspn(text, " \t");
    begin[strcspn(begin, "\n")] = '\0';
    snprintf(out, size, "%s", begin);
}

static void add_row(struct table *t, const struct profile *p,
                    const struct row *row, uint64_t whole)
{
    char text[TEXT_WIDTH + 1];

    source_text(text, sizeof(text), &row->line);
    table_add(t, "%" PRIu64, row->self);
    table_add(t, "%.2f%%", percent(row->self_period, whole));
    table_add(t, "%.2f%%", percent(row->total_period, whole));
    if (row->line.line > 0)
        table_add(t, "%s:%u", lines_short_path(p, row->line.file),
                  row->line.line);
    else
        table_add(t, "%s", lines_short_path(p, row->line.file));
    table_add(t, "%s", text);
}

void print_lines(struct profile *p, const struct view *v,
                 const struct view_filter *filter, uint32_t limit)
{
    static const struct table_column columns[] = {
        { "Samples", true }, { "Self", true },    { "Total", true },
        { "Line", false },   { "Source", false },
    };
    struct lines *lines = profile_lines(p);
    struct rows rows = { 0 };
    struct table table;
    uint64_t left = v->samples;
    uint32_t shown = 0, more = 0;

    lines_need(lines);
    make_rows(&rows, lines, v);
    count(&rows, &p->samples, filter);
    qsort(rows.list, rows.count, sizeof(*rows.list), by_self);
    table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    while (shown < rows.count && (limit == 0 || shown < limit) &&
           rows.list[shown].self > 0) {
        left -= rows.list[shown].self;
        add_row(&table, p, &rows.list[shown++], v->period);
    }
    table_print(&table, stdout);
    while (shown + more < rows.count && rows.list[shown + more].self > 0)
        more++;
    if (more > 0)
        printf("%u more lines with %" PRIu64 " samples (--rows 0 shows all)\n",
               more, left);
    free(rows.list);
    free(rows.of_node);
}
