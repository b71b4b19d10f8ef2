// stats --audit: does the sum of the accounts equal the elapsed time?
//
// The accounts are read twice, to check the time between the readings as well
// as the time since the start.
#include "stats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NODE "system.audit"

struct reading {
    struct sysinfo_audit *rows;
    size_t count;
};

static struct reading take(void)
{
    struct reading r;

    r.rows = read_optional(NODE, SYSINFO_RECORD_AUDIT, &r.count,
                           "every cycle in accounts");
    return r;
}

// Adds a row of the second reading, with the increase since the first. Returns
// whether the account balances.
static bool add_row(struct table *t, const struct sysinfo_audit *before,
                    const struct sysinfo_audit *now)
{
    uint64_t elapsed = now->elapsed - before->elapsed;
    uint64_t sum = now->sum - before->sum;
    int64_t difference = elapsed - sum;

    if (now->cpu == SYSINFO_ALL)
        table_add(t, "all");
    else
        table_add(t, "%" PRIu32, now->cpu);
    table_add(t, "%s", now->account);
    table_add(t, "%" PRIu64, (uint64_t)now->elapsed);
    table_add(t, "%" PRIu64, (uint64_t)now->sum);
    table_add(t, "%" PRId64, (int64_t)now->difference);
    table_add(t, "%" PRIu64, elapsed);
    table_add(t, "%" PRIu64, sum);
    table_add(t, "%" PRId64, difference);
    return now->difference == 0 && difference == 0;
}

static bool balanced(const struct reading *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->rows[i].difference != 0)
            return false;
    }
    return true;
}

static bool print(const struct reading *before, const struct reading *now)
{
    static const struct table_column columns[] = {
        { "CPU", true }, { "Account", false },   { "Elapsed", true },
        { "Sum", true }, { "Difference", true }, { "Since", true },
        { "Sum", true }, { "Difference", true },
    };
    struct table table;
    bool right = true;

    table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < now->count; i++)
        right &= add_row(&table, &before->rows[i], &now->rows[i]);
    table_print(&table, stdout);
    return right;
}

int show_audit(const struct settings *s)
{
    struct reading before = take(), now = take();
    bool right = balanced(&before) && balanced(&now);

    if (s->json) {
        printf("{\"first\": ");
        sysinfo_print_json(stdout, SYSINFO_RECORD_AUDIT, before.rows,
                           before.count);
        printf(",\n\"second\": ");
        sysinfo_print_json(stdout, SYSINFO_RECORD_AUDIT, now.rows, now.count);
        putchar('}');
    } else {
        right &= print(&before, &now);
    }
    free(before.rows);
    free(now.rows);
    if (!right)
        complain("the books do not balance: this is a bug in the kernel");
    return !right;
}
