#include "diff.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "header.h"
#include "user/libstrobe/strobe.h"
#include "views.h"

#define NONE UINT32_MAX
#define NAME_MAX_BYTES 512u
#define NS_PER_MS 1e6
#define CHANCE_SHOWN 0.0001

static const char no_memory[] = "not enough memory";

// --- splitting the arguments ------------------------------------------------

#define SEPARATOR "vs"

// Returns the index at which the second side begins, after removing SEPARATOR
// from the arguments.
static int split(int *argc, char *argv[])
{
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], SEPARATOR) != 0)
            continue;
        --*argc;
        memmove(argv + i, argv + i + 1, (*argc - i) * sizeof(*argv));
        return i;
    }
    return 1;
}

const char *diff_init(struct diff *d, bool total, int argc, char *argv[])
{
    int before = split(&argc, argv);
    *d = (struct diff){ .total = total, .files = argv, .runs = argc };
    if (before == 0 || before >= argc)
        return "at least two files are needed, BEFORE and AFTER";
    d->count[DIFF_BEFORE] = before;
    d->count[DIFF_AFTER] = argc - before;
    d->run = calloc(argc, sizeof(*d->run));
    for (uint32_t i = 0; i < DIFF_BUCKETS; i++)
        d->buckets[i] = NONE;
    return !d->run ? no_memory : NULL;
}

void diff_free(struct diff *d)
{
    for (uint32_t i = 0; i < d->row_count; i++) {
        free(d->rows[i].name);
        free(d->rows[i].values);
    }
    free(d->rows);
    free(d->run);
    *d = (struct diff){ 0 };
}

// --- rows -------------------------------------------------------------------

// FNV-1a (G. Fowler, L. Noll, P. Vo).
static uint32_t hash(const char *name)
{
    uint32_t h = 0x811c9dc5u;
    for (; *name != '\0'; name++)
        h = (h ^ (uint8_t)*name) * 0x01000193u;
    return h % DIFF_BUCKETS;
}

static struct diff_row *add_row(struct diff *d, const char *name)
{
    if (d->row_count == d->room) {
        uint32_t room = d->room * 2 + 256;
        void *rows = realloc(d->rows, room * sizeof(*d->rows));
        if (!rows)
            return NULL;
        d->rows = rows;
        d->room = room;
    }
    struct diff_row *r = &d->rows[d->row_count];
    *r = (struct diff_row){ .name = strdup(name),
                            .values = calloc(d->runs, sizeof(double)) };
    if (!r->name || !r->values) {
        free(r->name);
        free(r->values);
        return NULL;
    }
    uint32_t *bucket = &d->buckets[hash(name)];
    r->next = *bucket;
    *bucket = d->row_count++;
    return r;
}

// Returns NULL when out of memory.
static struct diff_row *find_row(struct diff *d, const char *name)
{
    uint32_t i = d->buckets[hash(name)];
    while (i != NONE && strcmp(d->rows[i].name, name) != 0)
        i = d->rows[i].next;
    return i != NONE ? &d->rows[i] : add_row(d, name);
}

static void name_row(char *out, const struct samples *s,
                     const struct view_row *r)
{
    const char *path = s->images.list[r->image].path;
    bool bare = path[0] == '['; // "[kernel]"
    if (r->name)
        snprintf(out, NAME_MAX_BYTES, "%.*s %s%s%s", (int)r->name_size, r->name,
                 bare ? "" : "[", path, bare ? "" : "]");
    else // addresses differ between builds
        snprintf(out, NAME_MAX_BYTES, "(no symbol) %s%s%s", bare ? "" : "[",
                 path, bare ? "" : "]");
}

// The total is estimated from the number of samples: each sample is weighted
// with the mean period of all samples.
static double value_of(const struct diff *d, const struct view *v,
                       const struct view_row *r, double unit)
{
    if (!d->total)
        return r->self_period / unit;
    return v->samples > 0 ? (double)r->total * v->period / v->samples / unit
                          : 0;
}

// --- adding -----------------------------------------------------------------

static const char *check(const struct diff *d, const struct perf_file *f)
{
    const char *event = d->run[0].info.event;
    if (d->added == d->runs)
        return "more files than announced";
    if (d->added > 0 && strcmp(event, f->info.event) != 0)
        return "it counts another event than the first file: times and events, "
               "or different events, cannot be compared";
    return NULL;
}

static const char *add_rows(struct diff *d, struct samples *s, double unit)
{
    static const struct view_filter busy = { .modes = 1u << MODE_IDLE };
    char name[NAME_MAX_BYTES];
    struct view v;
    if (view_make(&v, s, BY_SYMBOL, &busy) < 0)
        return no_memory;
    struct diff_row *all = find_row(d, "all but idle");
    bool failed = !all;
    if (!failed)
        all->values[d->added] = v.period / unit;
    for (uint32_t i = 0; i < v.count && !failed; i++) {
        double value = value_of(d, &v, &v.rows[i], unit);
        if (value <= 0)
            continue;
        name_row(name, s, &v.rows[i]);
        struct diff_row *r = find_row(d, name);
        failed = !r;
        if (!failed)
            r->values[d->added] += value;
    }
    view_free(&v);
    return failed ? no_memory : NULL;
}

double diff_unit(const struct perf_file *file)
{
    return file->info.event[0] == '\0' ? NS_PER_MS : 1;
}

const char *diff_unit_name(const struct diff *d)
{
    const char *event = d->run[0].info.event;
    return event[0] == '\0' ? "ms" : event;
}

const char *diff_add(struct diff *d, const struct perf_file *file,
                     struct samples *s)
{
    const char *problem = check(d, file);
    if (problem)
        return problem;
    problem = add_rows(d, s, diff_unit(file));
    if (problem)
        return problem;
    struct diff_run *r = &d->run[d->added];
    *r = (struct diff_run){ .path = d->files[d->added],
                            .info = file->info,
                            .cut = file->cut };
    memcpy(r->command, file->command, sizeof(r->command));
    d->added++;
    return NULL;
}

// --- comparing --------------------------------------------------------------

static double change(const struct diff_row *r)
{
    return r->side[DIFF_AFTER].mean - r->side[DIFF_BEFORE].mean;
}

static int by_change(const void *a, const void *b)
{
    double x = fabs(change(a)), y = fabs(change(b));
    if (x != y)
        return x < y ? 1 : -1;
    return strcmp(((const struct diff_row *)a)->name,
                  ((const struct diff_row *)b)->name);
}

static void compare(struct diff *d)
{
    for (uint32_t i = 0; i < d->row_count; i++) {
        struct diff_row *r = &d->rows[i];
        uint32_t before = d->count[DIFF_BEFORE];
        r->side[DIFF_BEFORE] = sample_of(r->values, before);
        r->side[DIFF_AFTER] =
            sample_of(r->values + before, d->count[DIFF_AFTER]);
        r->welch = welch_test(&r->side[DIFF_BEFORE], &r->side[DIFF_AFTER]);
    }
    if (d->row_count > 1)
        qsort(d->rows + 1, d->row_count - 1, sizeof(*d->rows), by_change);
}

// --- printing ---------------------------------------------------------------

void diff_print_run(FILE *out, const struct diff_run *r)
{
    const struct sprofile_info *i = &r->info;
    put_printable(out, r->path);
    fputs(": ", out);
    if (header_expects(i))
        fprintf(out, "%s at %u Hz, %" PRIu64 " samples expected, ", i->source,
                i->rate_hz, i->expected);
    else if (i->rate_hz != 0)
        fprintf(out, "%s at %u Hz, samples: ", i->source, i->rate_hz);
    else
        fprintf(out, "%s, every %" PRIu64 " %s, samples: ", i->source,
                i->period, i->event);
    fprintf(out, "%" PRIu64 " taken, %" PRIu64 " lost%s\n", i->taken, i->lost,
            r->cut ? "; cut off" : "");
}

static void print_side(FILE *out, const struct diff *d, const char *title,
                       uint32_t first, uint32_t count)
{
    fprintf(out, "%s ", title);
    put_printable(out, d->run[first].command);
    putc('\n', out);
    for (uint32_t i = first; i < first + count; i++) {
        fputs("  ", out);
        diff_print_run(out, &d->run[i]);
    }
}

static void print_header(FILE *out, const struct diff *d)
{
    uint32_t before = d->count[DIFF_BEFORE];
    print_side(out, d, "Before:", 0, before);
    print_side(out, d, "After: ", before, d->count[DIFF_AFTER]);
    fprintf(out, "%s in %s; idle left out\n",
            d->total ? "Each function with its callees,"
                     : "Each function alone,",
            d->run[0].info.event[0] == '\0' ? "milliseconds"
                                            : d->run[0].info.event);
    if (before < 2 || d->count[DIFF_AFTER] < 2)
        fprintf(out, "One run on a side: the significance of a difference is "
                     "unknown. Several: A1 A2 ... " SEPARATOR " B1 B2 ...\n");
    else
        fprintf(out, "Chance (Welch's t test): * below 5 %%, ** 1 %%, "
                     "*** 0.1 %%\n");
    fputc('\n', out);
}

static void add_side(struct table *t, const struct sample_of *s)
{
    table_add(t, "%.2f", s->mean);
    if (s->count > 1)
        table_add(t, "%.2f", s->deviation);
    else
        table_add(t, "-");
}

static void add_cells(struct table *t, const struct diff_row *r)
{
    double before = r->side[DIFF_BEFORE].mean;
    add_side(t, &r->side[DIFF_BEFORE]);
    add_side(t, &r->side[DIFF_AFTER]);
    table_add(t, "%+.2f", change(r));
    if (before > 0)
        table_add(t, "%+.1f%%", percent(change(r), before));
    else
        table_add(t, "new");
    if (isnan(r->welch.p))
        table_add(t, "-");
    else if (r->welch.p < CHANCE_SHOWN)
        table_add(t, "<%.4f", CHANCE_SHOWN);
    else
        table_add(t, "%.4f", r->welch.p);
    table_add(t, "%s", welch_mark(r->welch.p));
    table_add(t, "%s", r->name);
}

void diff_print(FILE *out, struct diff *d, uint32_t limit)
{
    static const struct table_column columns[] = {
        { "Before", true }, { "+-", true },     { "After", true },
        { "+-", true },     { "Change", true }, { "Percent", true },
        { "Chance", true }, { "Mark", false },  { "Function", false },
    };
    struct table t;
    compare(d);
    print_header(out, d);
    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    uint32_t shown = 0;
    while (shown < d->row_count && (limit == 0 || shown <= limit))
        add_cells(&t, &d->rows[shown++]);
    table_print(&t, out);
    if (shown < d->row_count)
        fprintf(out, "%u more rows (--rows 0 shows all)\n",
                d->row_count - shown);
}

static void json_number(FILE *out, const char *name, double value)
{
    if (isnan(value))
        fprintf(out, ", \"%s\": null", name);
    else
        fprintf(out, ", \"%s\": %.9g", name, value);
}

static void json_row(FILE *out, const struct diff *d, const struct diff_row *r)
{
    fprintf(out, "    {\"name\": ");
    json_string(out, r->name, strlen(r->name));
    json_number(out, "before", r->side[DIFF_BEFORE].mean);
    json_number(out, "before_deviation", r->side[DIFF_BEFORE].deviation);
    json_number(out, "after", r->side[DIFF_AFTER].mean);
    json_number(out, "after_deviation", r->side[DIFF_AFTER].deviation);
    json_number(out, "t", r->welch.t);
    json_number(out, "freedom", r->welch.freedom);
    json_number(out, "p", r->welch.p);
    fprintf(out, ", \"values\": [");
    for (uint32_t i = 0; i < d->runs; i++)
        fprintf(out, "%s%.9g", i > 0 ? ", " : "", r->values[i]);
    fprintf(out, "]}");
}

void diff_json(FILE *out, struct diff *d)
{
    compare(d);
    fprintf(out, "{\n  \"before_runs\": %u, \"after_runs\": %u,\n  \"unit\": ",
            d->count[DIFF_BEFORE], d->count[DIFF_AFTER]);
    const char *unit = diff_unit_name(d);
    json_string(out, unit, strlen(unit));
    fprintf(out, ",\n  \"rows\": [\n");
    for (uint32_t i = 0; i < d->row_count; i++) {
        json_row(out, d, &d->rows[i]);
        fprintf(out, "%s\n", i + 1 < d->row_count ? "," : "");
    }
    fprintf(out, "  ]\n}\n");
}
