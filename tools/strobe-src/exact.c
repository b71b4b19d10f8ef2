// strobe exact FILE: proves that an oracle's file (docs/exact.md) has each
// executed instruction once, and lists who executed how many. All other
// commands show the same file.
#include "exact_diff.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_DEFAULT 20

static const char *rows_text;
static struct common common;
static const struct tool_option options[] = {
    { 'n', "rows", "N", "Length of the table (20); 0: all",
      .text = &rows_text },
    FILE_OPTIONS(common),
    { 0 },
};
static const struct tool tool = {
    .usage = "strobe exact [OPTIONS] FILE\n"
             "       strobe exact diff [OPTIONS] BEFORE AFTER",
    .options = options,
    .notes = "FILE is from tools/vm --oracle or --oracle-flat. strobe top, "
             "lines, ... show it,\ntoo.\n",
};

// Prints the proof. Returns whether it holds.
static bool prove(const struct oracle_check *c)
{
    bool holds = c->sum == c->total && c->counted == c->total && !c->wrong &&
                 c->readings;
    printf("%" PRIu64 " instructions of all owners, %" PRIu64
           " executed: difference %" PRId64 "\n",
           c->counted, c->total, (int64_t)(c->counted - c->total));
    printf("The kernel's clock was compared %" PRIu64
           " times with this count: %" PRIu64 " differences\n",
           c->readings, c->wrong);
    if (c->wrong)
        printf("The differences add up to %+" PRId64
               " instructions (the clock minus the count)\n",
               c->off);
    printf("All CPUs were idle for %" PRIu64 " ns\n", c->idle);
    if (c->folded)
        printf("%" PRIu64 " paths were too many: their instructions are "
               "counted in their callers\n",
               c->folded);
    if (!c->ended)
        puts("The run was stopped: these are its counts until a moment before");
    return holds;
}

static void print_owners(const struct oracle_check *c, uint32_t rows)
{
    static const struct table_column columns[] = { { "Instructions", true },
                                                   { "Share", true },
                                                   { "Owner", false } };
    struct table t;
    uint64_t left = c->counted;
    uint32_t shown = 0;
    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    for (; shown < c->owner_count && (rows == 0 || shown < rows); shown++) {
        const struct oracle_owner *o = &c->owners[shown];
        left -= o->instructions;
        table_add(&t, "%" PRIu64, o->instructions);
        table_add(&t, "%.2f%%",
                  100.0 * (double)o->instructions /
                      (double)(c->counted ? c->counted : 1));
        table_add(&t, "%s", o->name);
    }
    table_print(&t, stdout);
    if (shown < c->owner_count)
        printf("%u more owners with %" PRIu64
               " instructions (--rows 0 shows all)\n",
               c->owner_count - shown, left);
}

static void open_exact(struct profile *p, const char *file)
{
    profile_open_all(p, file, &common);
    if (!p->exact)
        fail(1,
             "%s: not from tools/vm --oracle, but samples: strobe report shows "
             "it",
             file);
}

static int show(const char *file, uint32_t rows)
{
    struct profile p;
    open_exact(&p, file);
    images_load(&p.samples.images, IMAGE_KERNEL);
    profile_complain(&p);
    bool holds = prove(&p.oracle);
    putchar('\n');
    print_owners(&p.oracle, rows);
    if (p.oracle.unknown)
        complain("%s: [unknown]: %u programs whose files are not in %s: name "
                 "their folder with --dir",
                 file, p.oracle.unknown, p.elves.build);
    profile_close(&p);
    if (!holds)
        complain("%s: the counts are not exact", file);
    return holds ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int compare(const char *before, const char *after, uint32_t rows)
{
    struct profile a, b;
    open_exact(&a, before);
    open_exact(&b, after);
    exact_diff(&a, &b, rows);
    profile_complain(&a);
    profile_complain(&b);
    profile_close(&a);
    profile_close(&b);
    return EXIT_SUCCESS;
}

int command_exact(int argc, char *argv[])
{
    int at = options_parse(&tool, argc, argv);
    uint32_t rows = rows_text
                        ? option_number(&tool, "rows", rows_text, 0, UINT32_MAX)
                        : ROWS_DEFAULT;
    if (argc - at == 3 && strcmp(argv[at], "diff") == 0)
        return compare(argv[at + 1], argv[at + 2], rows);
    common.no_inline = true;
    return show(one_file(&tool, argc, argv, at), rows);
}
