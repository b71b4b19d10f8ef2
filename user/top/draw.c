// Drawing: see draw.h.
#include "draw.h"

#include "user/libstrobe/sysinfo.h"

#include <inttypes.h>
#include <time.h>

#define DAY 86400
#define HOUR 3600
#define MINUTE 60

// ---- header

static void draw_uptime(struct page *p, const struct dataset *d)
{
    time_t now = time(NULL);
    uint64_t up = d->uptime.seconds;
    const uint32_t loads[] = { d->load.one, d->load.five, d->load.fifteen };
    char clock[sizeof("00:00:00")];
    struct tm tm;

    strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
    page_line(p);
    page_put(p, STYLE_PLAIN,
             "top - %s up %" PRIu64 " days, %02u:%02u:%02u, load average:",
             clock, up / DAY, (unsigned)(up % DAY / HOUR),
             (unsigned)(up % HOUR / MINUTE), (unsigned)(up % MINUTE));
    for (int i = 0; i < 3; i++) {
        uint32_t h = sysinfo_hundredths(loads[i]);
        page_put(p, STYLE_PLAIN, " %" PRIu32 ".%02" PRIu32, h / 100, h % 100);
    }
}

static void draw_counts(struct page *p, const struct summary *s)
{
    page_line(p);
    page_put(p, STYLE_PLAIN,
             "tasks: %" PRIu32 " total, %" PRIu32 " new, %" PRIu32
             " ended (%" PRIu32 " short-lived) using %" PRIu32 ".%02" PRIu32
             "%% CPU",
             s->tasks, s->created, s->ended, s->short_lived,
             s->ended_percent / 100, s->ended_percent % 100);
    page_line(p);
    page_put(p, STYLE_PLAIN,
             "threads: %" PRIu32 " total, %" PRIu32 " running, %" PRIu32
             " ready, %" PRIu32 " sleeping, %" PRIu32 " lingering, %" PRIu32
             " other",
             s->threads, s->running, s->ready, s->sleeping, s->lingering,
             s->other);
}

static void draw_size(struct page *p, uint64_t bytes, const char *what)
{
    static const struct column size = { .kind = COLUMN_SIZE };
    union cell cell = { .number = (int64_t)bytes };
    char text[CELL_MAX];

    page_put(p, STYLE_PLAIN, " %s %s", cell_format(&size, cell, 0, text), what);
}

static void draw_memory(struct page *p, const struct sysinfo_physmem *m)
{
    page_line(p);
    page_put(p, STYLE_PLAIN, "memory:");
    draw_size(p, m->total, "total,");
    draw_size(p, m->unavailable, "unavail,");
    draw_size(p, m->used, "used,");
    draw_size(p, m->free, "free");
}

void draw_header(struct page *p, const struct comparison *c)
{
    draw_uptime(p, c->now);
    draw_counts(p, &c->summary);
    draw_cpus(p, c);
    draw_memory(p, &c->now->memory);
}

void draw_status(struct page *p, const struct choice *choice, double delay)
{
    const struct view *v = choice->view;

    page_line(p);
    page_put(p, STYLE_BOLD, "%s", v->meaning);
    page_put(p, STYLE_PLAIN, " by %s%s, every %g s",
             v->columns[choice->sort].title,
             choice->reverse ? " (reverse)" : "", delay);
    if (choice->task != SYSINFO_ALL)
        page_put(p, STYLE_PLAIN, ", of task %" PRIu32, choice->task);
    if (choice->active_only)
        page_put(p, STYLE_PLAIN, ", active ones");
    if (choice->filter[0] != '\0')
        page_put(p, STYLE_PLAIN, ", with \"%s\"", choice->filter);
    page_put(p, STYLE_PLAIN, "; h: help");
}

// ---- rows

static bool is_left_aligned(const struct column *c)
{
    return c->kind == COLUMN_TEXT || c->kind == COLUMN_STATE;
}

// The total width of the columns of rank `rank` and below.
static unsigned width_of(const struct view *v, unsigned rank)
{
    unsigned width = 0;

    for (unsigned i = 0; i < v->column_count; i++) {
        if (v->columns[i].rank <= rank)
            width += v->columns[i].width + (width > 0);
    }
    return width;
}

// Returns the highest rank whose columns fit on the page.
static unsigned fit_rank(const struct page *p, const struct view *v)
{
    unsigned rank = 0;

    for (unsigned i = 0; i < v->column_count; i++) {
        if (v->columns[i].rank > rank &&
            width_of(v, v->columns[i].rank) <= p->columns)
            rank = v->columns[i].rank;
    }
    return rank;
}

static void draw_cell(struct page *p, const struct view *v, unsigned i,
                      enum style style, const char *text)
{
    const struct column *c = &v->columns[i];

    if (i > 0)
        page_put(p, style == STYLE_BOLD ? STYLE_REVERSE : style, " ");
    if (is_left_aligned(c)) // the last column may use all remaining width
        page_put(p, style, "%-*.*s",
                 i + 1 < v->column_count ? (int)c->width : 0,
                 i + 1 < v->column_count ? (int)c->width : CELL_MAX, text);
    else
        page_put(p, style, "%*s", (int)c->width, text);
}

static void draw_titles(struct page *p, const struct choice *choice,
                        unsigned rank)
{
    const struct view *v = choice->view;

    page_line(p);
    for (unsigned i = 0; i < v->column_count; i++) {
        if (v->columns[i].rank <= rank)
            draw_cell(p, v, i, i == choice->sort ? STYLE_BOLD : STYLE_REVERSE,
                      v->columns[i].title);
    }
}

void draw_rows(struct page *p, const struct comparison *c,
               const struct choice *choice, const struct rows *rows,
               size_t first)
{
    const struct view *v = choice->view;
    unsigned rank = fit_rank(p, v);
    char text[CELL_MAX];

    draw_titles(p, choice, rank);
    for (size_t r = first; r < rows->count && page_rows_left(p) > 0; r++) {
        page_line(p);
        for (unsigned i = 0; i < v->column_count; i++) {
            if (v->columns[i].rank <= rank)
                draw_cell(p, v, i, STYLE_PLAIN,
                          cell_format(&v->columns[i], rows->rows[r].cells[i],
                                      c->summary.hz, text));
        }
    }
}

// ---- help

void draw_help(struct page *p)
{
    static const char *const lines[] = {
        "  t tasks            H threads       i messages between tasks",
        "  s system calls     1 CPUs          e exceptions and interrupts",
        "",
        "  P sort by use of the CPU           M by memory",
        "  T by time since the start          N by number",
        "  < > by the column to the left or right of this one",
        "  R reverse the order",
        "",
        "  / show what contains a text (empty: everything)",
        "  a only what was active since the last refresh, or everything",
        "  up down PgUp PgDn  move through the list",
        "",
        "  k send a signal to a task          r change a task's nice value",
        "  d delay between refreshes          space refresh now",
        "  q quit",
        "",
        "Percentages are of one CPU. Sizes with k are in KiB, with M in MiB.",
        "States: R running, r ready, S waiting, D sleeping deeply, T stopped,",
        "X dead, Z zombie.",
        "",
        "Any key goes back.",
    };

    page_line(p);
    page_put(p, STYLE_REVERSE, "top: keys");
    for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        page_line(p);
        page_put(p, STYLE_PLAIN, "%s", lines[i]);
    }
}
