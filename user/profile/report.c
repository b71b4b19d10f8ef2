// The report: an honest header, and the samples by symbol.
#include "profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// A line of the table: a symbol, an address without one, or one of the two
// sums below.
struct row {
    uint32_t address;
    uint64_t samples;
    const char *name; // NULL: none
    uint32_t name_size;
};

struct rows {
    struct row *rows;
    uint32_t count;
    uint64_t total;         // samples in all rows
    uint64_t unknown;       // user samples that no symbol claims
    const char *no_symbols; // why, or NULL
};

static void add_row(struct rows *rows, uint32_t address, uint64_t samples,
                    const char *name, uint32_t name_size)
{
    if (samples == 0)
        return;
    rows->rows[rows->count++] =
        (struct row){ address, samples, name, name_size };
    rows->total += samples;
}

static int by_samples(const void *left, const void *right)
{
    const struct row *a = left, *b = right;

    if (a->samples != b->samples)
        return a->samples < b->samples ? 1 : -1;
    return a->address < b->address ? -1 : a->address > b->address;
}

// One row for each symbol that was hit; the rest is unknown.
static void add_symbols(struct rows *rows, const struct counts *c,
                        const struct symbols *symbols)
{
    uint64_t *samples = calloc(symbols->count, sizeof(*samples));

    if (samples == NULL)
        fail(1, "not enough memory for the report");
    for (uint32_t i = 0; i < c->room; i++) {
        const struct pc_count *pc = &c->table[i];
        const struct symbol *symbol =
            pc->samples > 0 ? symbols_find(symbols, pc->pc) : NULL;
        if (symbol != NULL)
            samples[symbol - symbols->table] += pc->samples;
        else
            rows->unknown += pc->samples;
    }
    for (uint32_t i = 0; i < symbols->count; i++)
        add_row(rows, symbols->table[i].start, samples[i],
                symbols->table[i].name, symbols->table[i].name_size);
    free(samples);
    add_row(rows, 0, rows->unknown, "[unknown]", strlen("[unknown]"));
}

// Without symbols: one row for each address.
static void add_addresses(struct rows *rows, const struct counts *c)
{
    for (uint32_t i = 0; i < c->room; i++) {
        add_row(rows, c->table[i].pc, c->table[i].samples, NULL, 0);
        rows->unknown += c->table[i].samples;
    }
    add_row(rows, 0, c->uncounted, "[other addresses]",
            strlen("[other addresses]"));
    rows->unknown += c->uncounted;
}

static void collect(struct rows *rows, const struct counts *c,
                    const struct symbols *symbols)
{
    // What is there at most: all symbols, or all addresses; and three sums.
    size_t room = (rows->no_symbols == NULL ? symbols->count : c->used) + 3;

    rows->rows = calloc(room, sizeof(*rows->rows));
    if (rows->rows == NULL)
        fail(1, "not enough memory for the report");
    if (rows->no_symbols == NULL) {
        rows->unknown = c->uncounted;
        add_symbols(rows, c, symbols);
    } else {
        add_addresses(rows, c);
    }
    add_row(rows, 0, c->kernel, "[kernel]", strlen("[kernel]"));
    qsort(rows->rows, rows->count, sizeof(*rows->rows), by_samples);
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100.0 * part / whole : 0.0;
}

// Cycles that all sampled CPUs had together while the session ran.
static double cpu_cycles(const struct sprofile_info *info)
{
    return (double)info->elapsed_ns / 1e9 * info->tsc_hz * info->cpus;
}

// --- text -------------------------------------------------------------------

static void print_source(const struct settings *s,
                         const struct sprofile_info *info)
{
    const struct sprofile_options *o = &s->options;

    printf("Source:  %s at %u Hz on %u CPU%s", info->source, info->rate_hz,
           info->cpus, info->cpus == 1 ? "" : "s");
    bool other_source =
        o->source[0] != '\0' &&
        strncmp(o->source, info->source, SPROFILE_SOURCE_NAME) != 0;
    if (other_source)
        printf("; instead of %s, as asked", o->source);
    if (o->rate_hz != 0 && o->rate_hz != info->rate_hz)
        printf("; %u Hz was asked", o->rate_hz);
    putchar('\n');
}

static void print_header(const struct settings *s, const struct result *r,
                         const struct rows *rows)
{
    const struct sprofile_info *info = &r->info;
    uint64_t interrupts = info->taken + info->others;

    printf("Profile of %s (task %u), %.3f s\n",
           r->program != NULL ? r->program : "?", r->task,
           info->elapsed_ns / 1e9);
    print_source(s, info);
    printf("Samples: %" PRIu64 " expected, %" PRIu64 " taken, %" PRIu64
           " lost, %" PRIu64 " unknown; %" PRIu64 " user, %" PRIu64 " kernel\n",
           info->expected, info->taken, info->lost, rows->unknown, info->user,
           info->kernel);
    printf("Ticks:   %" PRIu64 " missed (came late); %" PRIu64
           " hit something else\n",
           info->missed, info->others);
    printf("Cost:    %.0f cycles a sample, %.3f %% of the CPU%s\n",
           interrupts > 0 ? (double)info->cycles / interrupts : 0.0,
           percent(info->cycles, cpu_cycles(info)), info->cpus == 1 ? "" : "s");
    if (r->counts.malformed > 0)
        printf("Corrupt: %" PRIu64 " records were not understood\n",
               r->counts.malformed);
    putchar('\n');
}

static void print_rows(const struct settings *s, const struct rows *rows)
{
    static const struct table_column columns[] = {
        { "Address", true },
        { "Samples", true },
        { "Percent", true },
        { "Symbol", false },
    };
    uint32_t shown = rows->count;
    uint64_t left = rows->total;
    struct table table;

    if (s->rows != 0 && s->rows < shown)
        shown = s->rows;
    table_init(&table, columns, 4);
    for (uint32_t i = 0; i < shown; i++) {
        const struct row *row = &rows->rows[i];
        if (row->address != 0)
            table_add(&table, "0x%x", row->address);
        else
            table_add(&table, "-");
        table_add(&table, "%" PRIu64, row->samples);
        table_add(&table, "%.2f%%", percent(row->samples, rows->total));
        table_add(&table, "%.*s", (int)row->name_size,
                  row->name != NULL ? row->name : "");
        left -= row->samples;
    }
    table_print(&table, stdout);
    if (shown < rows->count)
        printf("%u more rows with %" PRIu64 " samples (-n 0 shows all)\n",
               rows->count - shown, left);
}

// --- JSON -------------------------------------------------------------------

static void print_number(const char *name, uint64_t value)
{
    printf("  \"%s\": %" PRIu64 ",\n", name, value);
}

static void print_text(const char *name, const char *text)
{
    printf("  \"%s\": ", name);
    json_string(stdout, text, strlen(text));
    printf(",\n");
}

static void print_json(const struct settings *s, const struct result *r,
                       const struct rows *rows)
{
    const struct sprofile_info *info = &r->info;
    uint32_t shown = rows->count;

    if (s->rows != 0 && s->rows < shown)
        shown = s->rows;
    printf("{\n");
    print_text("program", r->program != NULL ? r->program : "");
    print_number("task", r->task);
    print_text("source", info->source);
    print_text("source_asked", s->options.source);
    print_number("rate_hz", info->rate_hz);
    print_number("rate_hz_asked", s->options.rate_hz);
    print_number("cpus", info->cpus);
    print_number("expected", info->expected);
    print_number("taken", info->taken);
    print_number("lost", info->lost);
    print_number("unknown", rows->unknown);
    print_number("user", info->user);
    print_number("kernel", info->kernel);
    print_number("others", info->others);
    print_number("missed", info->missed);
    print_number("malformed", r->counts.malformed);
    print_number("cycles", info->cycles);
    print_number("tsc_hz", info->tsc_hz);
    print_number("elapsed_ns", info->elapsed_ns);
    print_number("row_count", rows->count);
    printf("  \"rows\": [");
    for (uint32_t i = 0; i < shown; i++) {
        const struct row *row = &rows->rows[i];
        printf("%s\n    {\"address\": %u, \"samples\": %" PRIu64
               ", \"symbol\": ",
               i > 0 ? "," : "", row->address, row->samples);
        if (row->name != NULL)
            json_string(stdout, row->name, row->name_size);
        else
            printf("null");
        putchar('}');
    }
    printf("\n  ]\n}\n");
}

void report(const struct settings *s, const struct result *r)
{
    struct program_symbols symbols = { 0 };
    struct rows rows = { 0 };

    rows.no_symbols = r->program != NULL
                          ? program_symbols_load(&symbols, r->program)
                          : "its file is not known";
    if (rows.no_symbols != NULL)
        complain("%s: %s; addresses are shown instead. Link it without -s, "
                 "or put the output of nm beside it as PROGRAM.sym",
                 r->program != NULL ? r->program : "the program",
                 rows.no_symbols);
    collect(&rows, &r->counts, &symbols.symbols);
    if (s->json) {
        print_json(s, r, &rows);
    } else {
        print_header(s, r, &rows);
        print_rows(s, &rows);
    }
    free(rows.rows);
    program_symbols_free(&symbols);
}
