// Choosing, ordering, formatting: see rows.h.
#define _GNU_SOURCE // qsort_r, strcasestr
#include "rows.h"

#include "user/libstrobe/sysinfo.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MS_PER_SECOND 1000
#define SIZE_DIGITS 1000000 // from here on the next larger unit is used

void choose_view(struct choice *c, const struct view *v)
{
    c->view = v;
    c->sort = (unsigned)view_column_by_name(v, v->sort);
    c->reverse = false;
}

// ---- choosing

static bool matches(const struct view *v, const struct row *row,
                    const char *filter)
{
    char id[CELL_MAX];

    if (filter[0] == '\0')
        return true;
    snprintf(id, sizeof(id), "%" PRIu32, row->id);
    if (strcmp(id, filter) == 0)
        return true;
    for (unsigned i = 0; i < v->column_count; i++) {
        if (v->columns[i].kind == COLUMN_TEXT &&
            strcasestr(row->cells[i].text, filter))
            return true;
    }
    return false;
}

static bool wanted(const struct choice *c, const struct row *row)
{
    if (c->task != SYSINFO_ALL && row->task != SYSINFO_ALL &&
        row->task != c->task)
        return false;
    if (c->active_only && !row->active)
        return false;
    return matches(c->view, row, c->filter);
}

// ---- ordering

static int natural_order(const struct column *column, union cell a,
                         union cell b)
{
    switch (column->kind) {
    case COLUMN_TEXT:
        return strcasecmp(a.text, b.text);
    case COLUMN_ID:
    case COLUMN_STATE:
        return a.number < b.number ? -1 : a.number > b.number;
    default:
        return a.number > b.number ? -1 : a.number < b.number;
    }
}

static int in_order(const void *a, const void *b, void *arg)
{
    const struct row *x = a, *y = b;
    const struct choice *c = arg;
    int order = natural_order(&c->view->columns[c->sort], x->cells[c->sort],
                              y->cells[c->sort]);

    if (order != 0)
        return c->reverse ? -order : order;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool make_room(struct rows *r, size_t count)
{
    if (count <= r->room)
        return true;
    struct row *rows = realloc(r->rows, count * sizeof(*rows));
    if (!rows)
        return false;
    r->rows = rows;
    r->room = count;
    return true;
}

bool rows_make(struct comparison *c, const struct choice *choice,
               struct rows *out)
{
    size_t all = choice->view->count(c->now);

    out->count = 0;
    c->tasks = task_sharing(&c->summary);
    if (!make_room(out, all))
        return false;
    for (size_t i = 0; i < all; i++) {
        struct row *row = &out->rows[out->count];
        choice->view->fill(c, i, row);
        out->count += wanted(choice, row);
    }
    if (out->count > 0)
        qsort_r(out->rows, out->count, sizeof(*out->rows), in_order,
                (void *)choice);
    return true;
}

void rows_free(struct rows *r)
{
    free(r->rows);
    *r = (struct rows){ 0 };
}

// ---- text

char state_letter(uint32_t state)
{
    static const char letters[] = {
        [SYSINFO_RUNNING] = 'R',  [SYSINFO_READY] = 'r',
        [SYSINFO_SLEEPING] = 'D', [SYSINFO_WAITING] = 'S',
        [SYSINFO_STOPPED] = 'T',  [SYSINFO_DEAD] = 'X',
        [SYSINFO_ZOMBIE] = 'Z',
    };

    return state < sizeof(letters) ? letters[state] : '?';
}

static void format_size(uint64_t bytes, char buf[CELL_MAX])
{
    static const char *const units[] = { "", "k", "M" };
    unsigned unit = 0;

    for (; bytes >= SIZE_DIGITS && unit < 2; unit++)
        bytes /= KIB(1);
    snprintf(buf, CELL_MAX, "%" PRIu64 "%s", bytes, units[unit]);
}

static void format_text(const char *text, char buf[CELL_MAX])
{
    size_t n = 0;

    for (; n < CELL_MAX - 1 && text[n] != '\0'; n++)
        buf[n] = isprint((unsigned char)text[n]) ? text[n] : '?';
    buf[n] = '\0';
}

const char *cell_format(const struct column *column, union cell cell,
                        uint64_t hz, char buf[CELL_MAX])
{
    uint64_t n = cell.number;

    switch (column->kind) {
    case COLUMN_ID:
        if (n == SYSINFO_ALL)
            snprintf(buf, CELL_MAX, "-");
        else
            snprintf(buf, CELL_MAX, "%" PRIu64, n);
        break;
    case COLUMN_NUMBER:
        snprintf(buf, CELL_MAX, "%" PRId64, cell.number);
        break;
    case COLUMN_PERCENT:
        snprintf(buf, CELL_MAX, "%" PRIu64 ".%02u", n / 100,
                 (unsigned)(n % 100));
        break;
    case COLUMN_SIZE:
        format_size(n, buf);
        break;
    case COLUMN_TIME:
        n = sysinfo_milliseconds(n, hz);
        snprintf(buf, CELL_MAX, "%" PRIu64 ".%03u", n / MS_PER_SECOND,
                 (unsigned)(n % MS_PER_SECOND));
        break;
    case COLUMN_MS:
        snprintf(buf, CELL_MAX, "%" PRIu64, sysinfo_milliseconds(n, hz));
        break;
    case COLUMN_STATE:
        snprintf(buf, CELL_MAX, "%c", state_letter((uint32_t)n));
        break;
    case COLUMN_FLAG:
        snprintf(buf, CELL_MAX, "%s", n ? "yes" : "no");
        break;
    case COLUMN_TEXT:
        format_text(cell.text, buf);
        break;
    }
    return buf;
}
