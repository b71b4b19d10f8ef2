// strobe calls FILE PATH...: the instructions of a typical call, by path and
// source line. tools/guard compares them with the budgets (docs/exact.md).
//
// Each instruction counts as often as it is executed in a call, rounded to a
// whole number: so what happens in fewer than half of the calls (a slice that
// ends, a page that is filled) does not count, and the sum is the same
// wherever the timer interrupts. Interrupts have paths of their own.
#include "lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 256
#define WORDS_MAX 16
#define UNKNOWN UINT32_MAX

static struct common common;
static const struct tool_option options[] = {
    FILE_OPTIONS(common),
    { 0 },
};
static const struct tool tool = {
    .usage = "strobe calls [OPTIONS] FILE PATH...",
    .options = options,
    .notes = "FILE is from tools/vm --oracle. PATH is OUTER;INNER, "
             "functions of which each calls the\nnext, or OUTER;...;INNER if "
             "others may be between them. The instructions are those\nin "
             "the path and in what it calls, for each call of INNER, or of "
             "another function\nthere, NAME: OUTER;INNER@NAME.\n",
};

// The instructions executed at an address, in a path.
struct entry {
    const char *path;
    struct line line;
    struct place place; // of the code
    uint64_t executed;
};

struct calls {
    struct profile *profile;
    struct view view;
    struct names names;
    char text[NAME_SIZE]; // the argument, split into `words`
    const char *words[WORDS_MAX], *called;
    bool gap[WORDS_MAX]; // other functions may be before the word
    uint32_t word_count;
    // Of each node of the chains:
    uint32_t *matched;  // bit N: its path may end with the first N words
    const char **paths; // from the last word on; NULL if not all are in it
    struct entry *entries;
    size_t count, room;
    uint64_t number; // of calls
};

static void parse(struct calls *c, const char *path)
{
    if (strlen(path) >= sizeof(c->text))
        fail(USAGE_STATUS, "%s: a path has at most %zu characters", path,
             sizeof(c->text) - 1);
    snprintf(c->text, sizeof(c->text), "%s", path);
    char *called = strchr(c->text, '@');
    if (called)
        *called++ = '\0';
    c->word_count = 0;
    memset(c->gap, 0, sizeof(c->gap));
    c->gap[0] = true;
    for (char *word = strtok(c->text, ";"); word; word = strtok(NULL, ";")) {
        if (c->word_count == WORDS_MAX - 1)
            fail(USAGE_STATUS, "%s: a path has at most %d functions", path,
                 WORDS_MAX - 1);
        if (strcmp(word, "...") == 0)
            c->gap[c->word_count] = true;
        else
            c->words[c->word_count++] = word;
    }
    if (c->word_count == 0 || (called && !*called))
        fail(USAGE_STATUS, "'%s': a path is FUNCTION;...;FUNCTION[@FUNCTION]",
             path);
    c->called = called ? called : c->words[c->word_count - 1];
}

// --- nodes ------------------------------------------------------------------

// The function at a node's place, as the symbols say.
static void name_of(const struct calls *c, uint32_t node, char *out)
{
    const struct view_row *row = &c->view.rows[c->view.row_of[node]];

    if (row->name)
        snprintf(out, NAME_SIZE, "%.*s", (int)row->name_size, row->name);
    else
        snprintf(out, NAME_SIZE, "[unknown]");
}

// Appends the inlined functions at the node's place, the outermost first.
static void put_inlined(const struct calls *c, uint32_t node, FILE *f)
{
    const struct profile *p = c->profile;
    uint32_t count;
    const struct line_frame *frames =
        lines_frames(p->lines, p->samples.chains.nodes[node].place, &count);

    for (uint32_t i = count - 1; i-- > 0;)
        fprintf(f, ";%s", frames[i].function ? frames[i].function : "?");
}

// The words matched by a path and a further function.
static uint32_t matched_with(const struct calls *c, uint32_t before,
                             const char *name)
{
    uint32_t after = before & 1u << c->word_count;

    for (uint32_t i = 0; i < c->word_count; i++) {
        if (!(before >> i & 1))
            continue;
        if (c->gap[i])
            after |= 1u << i;
        if (strcmp(name, c->words[i]) == 0)
            after |= 1u << (i + 1);
    }
    return after;
}

// Finds the words that are in the path of a node, and its text.
static void match(struct calls *c, uint32_t node)
{
    uint32_t parent = c->profile->samples.chains.nodes[node].parent;
    char name[NAME_SIZE], *path = NULL;
    size_t size;

    if (c->matched[node] != UNKNOWN)
        return;
    match(c, parent); // depth: chain length
    name_of(c, node, name);
    c->matched[node] = matched_with(c, c->matched[parent], name);
    if (!(c->matched[node] >> c->word_count & 1))
        return;
    FILE *f = enough(open_memstream(&path, &size));
    if (c->paths[parent])
        fprintf(f, "%s;", c->paths[parent]);
    fputs(name, f);
    put_inlined(c, node, f);
    if (fclose(f) != 0)
        enough(NULL);
    c->paths[node] = names_keep(&c->names, path);
    free(path);
}

static void match_all(struct calls *c)
{
    uint32_t nodes = c->profile->samples.chains.count;

    memset(c->paths, 0, nodes * sizeof(*c->paths));
    for (uint32_t n = 0; n < nodes; n++)
        c->matched[n] = n == CHAIN_ROOT ? 1 : UNKNOWN;
    for (uint32_t n = 0; n < nodes; n++)
        match(c, n);
}

// --- entries ----------------------------------------------------------------

// Whether the node's place is the first of the function whose calls count.
static bool begins_call(const struct calls *c, uint32_t node)
{
    struct place place = c->profile->samples.chains.nodes[node].place;
    const struct view_row *row = &c->view.rows[c->view.row_of[node]];

    return row->name && row->address == place.address &&
           row->name_size == strlen(c->called) &&
           memcmp(row->name, c->called, row->name_size) == 0;
}

static void add(struct calls *c, const struct sample_count *s)
{
    const struct profile *p = c->profile;

    if (c->count == c->room) {
        c->room = c->room ? 2 * c->room : 1024;
        c->entries = enough(realloc(c->entries, c->room * sizeof(*c->entries)));
    }
    struct entry *e = &c->entries[c->count++];
    e->path = c->paths[s->chain];
    e->place = p->samples.chains.nodes[s->chain].place;
    e->line = lines_find(p->lines, e->place);
    e->executed = s->samples;
    if (begins_call(c, s->chain))
        c->number += s->samples;
}

static int by_text(const char *a, const char *b)
{
    return a == b ? 0 : strcmp(a ? a : "", b ? b : "");
}

static int by_line(const struct entry *x, const struct entry *y)
{
    int order = by_text(x->path, y->path);
    if (order == 0)
        order = by_text(x->line.file, y->line.file);
    if (order == 0 && x->line.line != y->line.line)
        order = x->line.line < y->line.line ? -1 : 1;
    return order;
}

static int by_place(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = by_line(x, y);
    if (order == 0 && x->place.image != y->place.image)
        order = x->place.image < y->place.image ? -1 : 1;
    if (order == 0 && x->place.address != y->place.address)
        order = x->place.address < y->place.address ? -1 : 1;
    return order;
}

// Joins the entries of each address, divides them by the number of calls, and
// joins those of each line.
static void divide(struct calls *c)
{
    size_t kept = 0;

    qsort(c->entries, c->count, sizeof(*c->entries), by_place);
    for (size_t i = 0; i < c->count; i++) {
        if (kept && by_place(&c->entries[kept - 1], &c->entries[i]) == 0)
            c->entries[kept - 1].executed += c->entries[i].executed;
        else
            c->entries[kept++] = c->entries[i];
    }
    c->count = kept;
    kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        struct entry e = c->entries[i];
        e.executed = (e.executed + c->number / 2) / c->number;
        if (kept && by_line(&c->entries[kept - 1], &e) == 0)
            c->entries[kept - 1].executed += e.executed;
        else
            c->entries[kept++] = e;
    }
    c->count = kept;
}

// --- printing ---------------------------------------------------------------

// Prints the lines of the path whose entries begin at `i`. Returns the end.
static size_t print_path(const struct calls *c, size_t i, struct table *t)
{
    const char *path = c->entries[i].path, *file = "";
    uint64_t sum = 0;
    char *lines = NULL;
    size_t size;
    FILE *f = enough(open_memstream(&lines, &size));

    for (; i < c->count && c->entries[i].path == path; i++) {
        const struct entry *e = &c->entries[i];
        const char *now =
            e->line.file ? lines_short_path(c->profile, e->line.file) : "?";
        if (e->executed == 0)
            continue;
        if (sum == 0 || strcmp(now, file) != 0)
            fprintf(f, "%s%s", sum == 0 ? "" : " ", now);
        fprintf(f, ":%u=%" PRIu64, e->line.line, e->executed);
        file = now;
        sum += e->executed;
    }
    if (fclose(f) != 0)
        enough(NULL);
    if (sum) {
        table_add(t, "%" PRIu64, sum);
        table_add(t, "%s", path);
        table_add(t, "%s", lines);
    }
    free(lines);
    return i;
}

static void print(const struct calls *c, const char *path, uint64_t all)
{
    static const struct table_column columns[] = { { "Instructions", true },
                                                   { "Path", false },
                                                   { "Lines", false } };
    struct table t;
    uint64_t each = 0;

    for (size_t i = 0; i < c->count; i++)
        each += c->entries[i].executed;
    printf("%s: %" PRIu64 " instructions in each of %" PRIu64 " calls, %" PRIu64
           " in all\n",
           path, each, c->number, all);
    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < c->count;)
        i = print_path(c, i, &t);
    table_print(&t, stdout);
}

static void show(struct calls *c, const char *path)
{
    const struct samples *s = &c->profile->samples;
    uint64_t all = 0;

    parse(c, path);
    match_all(c);
    c->count = c->number = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (!c->paths[s->counts[i].chain])
            continue;
        add(c, &s->counts[i]);
        all += s->counts[i].samples;
    }
    if (c->number == 0)
        fail(1,
             "%s: no calls of %s in the path %s (strobe top and tree list the "
             "functions; inlined ones have no calls)",
             c->profile->path, c->called, path);
    divide(c);
    print(c, path, all);
}

int command_calls(int argc, char *argv[])
{
    int at = options_parse(&tool, argc, argv);
    struct view_filter filter = { .by_event = false };
    struct profile p;
    struct calls c = { .profile = &p };

    if (argc - at < 2) {
        complain("a file and a path are needed");
        options_wrong(&tool);
    }
    common.no_inline = true; // put_inlined
    profile_open_all(&p, argv[at], &common);
    if (!p.exact)
        fail(1, "%s: not from tools/vm --oracle: only its files have all calls",
             argv[at]);
    if (p.oracle.flat)
        fail(1,
             "%s: flat counts, without calls: tools/vm --oracle FILE counts "
             "them",
             argv[at]);
    if (p.oracle.counted != p.oracle.total)
        fail(1, "%s: its counts do not balance (strobe exact)", argv[at]);
    lines_need(profile_lines(&p));
    profile_view(&c.view, &p, BY_SYMBOL, &filter);
    profile_complain(&p);
    uint32_t nodes = p.samples.chains.count;
    c.matched = enough(calloc(nodes, sizeof(*c.matched)));
    c.paths = enough(calloc(nodes, sizeof(*c.paths)));
    for (int i = at + 1; i < argc; i++) {
        if (i > at + 1)
            putchar('\n');
        show(&c, argv[i]);
    }
    free(c.matched);
    free(c.paths);
    free(c.entries);
    names_free(&c.names);
    view_free(&c.view);
    profile_close(&p);
    return EXIT_SUCCESS;
}
