// Drawing: see draw.h.
#include "draw.h"

#include "user/libstrobe/sysinfo.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define HZ_PER_MHZ 1000000
#define DAY 86400
#define HOUR 3600
#define MINUTE 60

// A bar is drawn in the room that the numbers leave, within these limits.
#define BAR_MIN 18
#define BAR_MAX 42
#define BAR_FRAME 2 // its brackets
#define ROWS_MIN 8  // of the view: with less, CPUs share one line

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
    page_put(p, LOOK_PLAIN,
             "top - %s up %" PRIu64 " days, %02u:%02u:%02u, load average:",
             clock, up / DAY, (unsigned)(up % DAY / HOUR),
             (unsigned)(up % HOUR / MINUTE), (unsigned)(up % MINUTE));
    for (int i = 0; i < 3; i++) {
        uint32_t h = sysinfo_hundredths(loads[i]);
        page_put(p, LOOK_PLAIN, " %" PRIu32 ".%02" PRIu32, h / 100, h % 100);
    }
}

static void draw_counts(struct page *p, const struct summary *s)
{
    page_line(p);
    page_put(p, LOOK_PLAIN,
             "tasks: %" PRIu32 " total, %" PRIu32 " new, %" PRIu32
             " ended (%" PRIu32 " short-lived) using %" PRIu32 ".%02" PRIu32
             "%% CPU",
             s->tasks, s->created, s->ended, s->short_lived,
             s->ended_percent / 100, s->ended_percent % 100);
    page_line(p);
    page_put(p, LOOK_PLAIN,
             "threads: %" PRIu32 " total, %" PRIu32 " running, %" PRIu32
             " ready, %" PRIu32 " sleeping, %" PRIu32 " lingering, %" PRIu32
             " other",
             s->threads, s->running, s->ready, s->sleeping, s->lingering,
             s->other);
}

// The numbers of a CPU's line, in the order they give way where there is no
// room: the last first.
static const struct {
    const char *title;
    unsigned width;
    size_t share, cycles; // members of cpu_use: which of them is shown
} cpu_numbers[] = {
#define SHARE(title, member)                          \
    {                                                 \
        title, 7, offsetof(struct cpu_use, member), 0 \
    }
#define CYCLES(title, member)                         \
    {                                                 \
        title, 9, 0, offsetof(struct cpu_use, member) \
    }
    SHARE("busy%", busy),
    SHARE("idle%", idle),
    SHARE("user%", user),
    SHARE("kern%", kernel),
    SHARE("irq%", irq),
    CYCLES("busy ms", busy_total),
    CYCLES("idle ms", idle_total),
    CYCLES("user ms", user_total),
    CYCLES("kern ms", kernel_total),
    CYCLES("irq ms", irq_total),
};
#define CPU_NUMBERS (sizeof(cpu_numbers) / sizeof(cpu_numbers[0]))
#define CPU_NAME "%-6s"
#define CPU_NAME_WIDTH 6

// How many of them fit beside the shortest bar, and how long the bar may be.
static unsigned fit_numbers(const struct page *p, unsigned *bar)
{
    unsigned used = CPU_NAME_WIDTH, shown = 0;

    for (; shown < CPU_NUMBERS; shown++) {
        unsigned more = cpu_numbers[shown].width;
        if (used + more + 1 + BAR_FRAME + BAR_MIN > p->columns)
            break;
        used += more;
    }
    unsigned rest = used + 1 + BAR_FRAME;
    *bar = p->columns > rest ? p->columns - rest : 0;
    if (*bar > BAR_MAX)
        *bar = BAR_MAX;
    return shown;
}

static void draw_cpu_number(struct page *p, const struct cpu_use *u,
                            unsigned number, uint64_t hz)
{
    const char *base = (const char *)u;
    unsigned width = cpu_numbers[number].width;
    char text[CELL_MAX];

    if (cpu_numbers[number].share != 0) {
        uint32_t percent;
        memcpy(&percent, base + cpu_numbers[number].share, sizeof(percent));
        snprintf(text, sizeof(text), "%" PRIu32 ".%02" PRIu32, percent / 100,
                 percent % 100);
    } else {
        uint64_t cycles;
        memcpy(&cycles, base + cpu_numbers[number].cycles, sizeof(cycles));
        snprintf(text, sizeof(text), "%" PRIu64,
                 sysinfo_milliseconds(cycles, hz));
    }
    page_put(p, LOOK_PLAIN, "%*s", width, text);
}

// User time, kernel time, interrupts, then the idle rest.
static void draw_bar(struct page *p, const struct cpu_use *u, unsigned length)
{
    static const char marks[] = "|#!.";
    const uint32_t parts[] = { u->user, u->kernel, u->irq, u->idle };
    struct sharing s = { .whole = PERCENT_ALL, .units = length };
    char cells[BAR_MAX];

    page_put(p, LOOK_PLAIN, " [");
    for (int i = 0; i < 4; i++) {
        uint32_t n = share(&s, parts[i]);
        memset(cells, marks[i], n);
        page_put(p, i < 3 ? LOOK_BOLD : LOOK_PLAIN, "%.*s", (int)n, cells);
    }
    page_put(p, LOOK_PLAIN, "]");
}

static void draw_cpu(struct page *p, const struct cpu_use *u, const char *name,
                     uint64_t hz)
{
    unsigned bar, shown = fit_numbers(p, &bar);

    page_line(p);
    page_put(p, LOOK_PLAIN, CPU_NAME, name);
    for (unsigned i = 0; i < shown; i++)
        draw_cpu_number(p, u, i, hz);
    if (bar >= BAR_MIN)
        draw_bar(p, u, bar);
}

static void draw_cpu_titles(struct page *p, const struct comparison *c)
{
    unsigned bar, shown = fit_numbers(p, &bar);
    char mhz[CPU_NAME_WIDTH + 8];

    snprintf(mhz, sizeof(mhz), "%uMHz", (unsigned)(c->summary.hz / HZ_PER_MHZ));
    page_line(p);
    page_put(p, LOOK_PLAIN, CPU_NAME " ", mhz);
    for (unsigned i = 0; i < shown; i++) // one less for the long MHz
        page_put(p, LOOK_PLAIN, "%*s", (int)cpu_numbers[i].width - (i == 0),
                 cpu_numbers[i].title);
    if (bar >= BAR_MIN)
        page_put(p, LOOK_PLAIN, "  |user #kern !irq");
}

static void draw_cpus(struct page *p, const struct comparison *c)
{
    const struct dataset *now = c->now;

    draw_cpu_titles(p, c);
    // Memory, status and titles are still to come.
    if (page_rows_left(p) < now->cpu_count + 3 + ROWS_MIN) {
        draw_cpu(p, &c->summary.all, "all", c->summary.hz);
        return;
    }
    for (size_t i = 0; i < now->cpu_count; i++) {
        const struct sysinfo_cpu *cpu = &now->cpus[i];
        char name[sizeof("cpu4294967295")];
        struct cpu_use u;

        cpu_use(dataset_cpu(c->before, cpu->id), cpu, c->summary.elapsed_ns,
                &u);
        snprintf(name, sizeof(name), "cpu%" PRIu32, cpu->id);
        draw_cpu(p, &u, name, c->summary.hz);
    }
}

static void draw_size(struct page *p, uint64_t bytes, const char *what)
{
    static const struct column size = { .kind = COLUMN_SIZE };
    union cell cell = { .number = (int64_t)bytes };
    char text[CELL_MAX];

    page_put(p, LOOK_PLAIN, " %s %s", cell_format(&size, cell, 0, text), what);
}

static void draw_memory(struct page *p, const struct sysinfo_physmem *m)
{
    page_line(p);
    page_put(p, LOOK_PLAIN, "memory:");
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
    page_put(p, LOOK_BOLD, "%s", v->meaning);
    page_put(p, LOOK_PLAIN, " by %s%s, every %g s",
             v->columns[choice->sort].title,
             choice->reverse ? " (reverse)" : "", delay);
    if (choice->task != SYSINFO_ALL)
        page_put(p, LOOK_PLAIN, ", of task %" PRIu32, choice->task);
    if (choice->active_only)
        page_put(p, LOOK_PLAIN, ", active ones");
    if (choice->filter[0] != '\0')
        page_put(p, LOOK_PLAIN, ", with \"%s\"", choice->filter);
    page_put(p, LOOK_PLAIN, "; h: help");
}

// ---- rows

static bool is_left(const struct column *c)
{
    return c->kind == COLUMN_TEXT || c->kind == COLUMN_STATE;
}

// Columns that all columns up to this rank take.
static unsigned width_of(const struct view *v, unsigned rank)
{
    unsigned width = 0;

    for (unsigned i = 0; i < v->column_count; i++) {
        if (v->columns[i].rank <= rank)
            width += v->columns[i].width + (width > 0);
    }
    return width;
}

// The highest rank that fits.
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
                      enum look look, const char *text)
{
    const struct column *c = &v->columns[i];

    if (i > 0)
        page_put(p, look == LOOK_BOLD ? LOOK_REVERSE : look, " ");
    if (is_left(c)) // the last may be as long as there is room
        page_put(p, look, "%-*.*s", i + 1 < v->column_count ? (int)c->width : 0,
                 i + 1 < v->column_count ? (int)c->width : CELL_MAX, text);
    else
        page_put(p, look, "%*s", (int)c->width, text);
}

static void draw_titles(struct page *p, const struct choice *choice,
                        unsigned rank)
{
    const struct view *v = choice->view;

    page_line(p);
    for (unsigned i = 0; i < v->column_count; i++) {
        if (v->columns[i].rank <= rank)
            draw_cell(p, v, i, i == choice->sort ? LOOK_BOLD : LOOK_REVERSE,
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
                draw_cell(p, v, i, LOOK_PLAIN,
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
    page_put(p, LOOK_REVERSE, "top: keys");
    for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        page_line(p);
        page_put(p, LOOK_PLAIN, "%s", lines[i]);
    }
}
