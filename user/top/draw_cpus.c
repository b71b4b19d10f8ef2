// The header's lines about CPUs: numbers and a bar for each CPU. If there are
// too many CPUs, the numbers are the average of all, and the bars share lines.
#include "draw.h"

#include "user/libstrobe/sysinfo.h"

#include <inttypes.h>
#include <string.h>

#define HZ_PER_MHZ 1000000

// The length of a bar, which uses the width that the numbers leave.
#define BAR_MIN 18
#define BAR_MAX 42
#define BAR_FRAME 2 // width of its brackets
// The same for bars that share a line, each after its CPU's number.
#define SMALL_BAR_MIN 4
#define SMALL_BAR_NAME "%2" PRIu32
#define SMALL_BAR_NAME_WIDTH 2
// Lines that the header leaves free: memory, status, titles, and rows of the
// view.
#define LINES_BELOW 3
#define ROWS_MIN 8      // with fewer, CPUs share one line of numbers
#define ROWS_MIN_BARS 5 // with fewer, there are no bars for each CPU

// The numbers of a CPU's line. If the line is too narrow, the last ones are
// left out first.
static const struct {
    const char *title;
    unsigned width;
    size_t share, cycles; // offset in cpu_use of the number; the other is 0
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

// Returns how many numbers fit beside a bar of minimum length, and the length
// available for the bar.
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
    page_put(p, STYLE_PLAIN, "%*s", width, text);
}

// Draws user time, kernel time, interrupts, and idle time. `length` <= BAR_MAX.
static void draw_bar(struct page *p, const struct cpu_use *u, unsigned length)
{
    static const char marks[] = "|#!.";
    const uint32_t parts[] = { u->user, u->kernel, u->irq, u->idle };
    struct sharing s = { .whole = PERCENT_ALL, .units = length };
    char cells[BAR_MAX];

    page_put(p, STYLE_PLAIN, "[");
    for (int i = 0; i < 4; i++) {
        uint32_t n = share(&s, parts[i]);
        memset(cells, marks[i], n);
        page_put(p, i < 3 ? STYLE_BOLD : STYLE_PLAIN, "%.*s", (int)n, cells);
    }
    page_put(p, STYLE_PLAIN, "]");
}

static void draw_cpu(struct page *p, const struct cpu_use *u, const char *name,
                     uint64_t hz)
{
    unsigned bar, shown = fit_numbers(p, &bar);

    page_line(p);
    page_put(p, STYLE_PLAIN, CPU_NAME, name);
    for (unsigned i = 0; i < shown; i++)
        draw_cpu_number(p, u, i, hz);
    if (bar >= BAR_MIN) {
        page_put(p, STYLE_PLAIN, " ");
        draw_bar(p, u, bar);
    }
}

static void draw_cpu_titles(struct page *p, const struct comparison *c)
{
    unsigned bar, shown = fit_numbers(p, &bar);
    char mhz[CPU_NAME_WIDTH + 8];

    snprintf(mhz, sizeof(mhz), "%uMHz", (unsigned)(c->summary.hz / HZ_PER_MHZ));
    page_line(p);
    page_put(p, STYLE_PLAIN, CPU_NAME " ", mhz);
    for (unsigned i = 0; i < shown;
         i++) // first title 1 narrower: MHz is 1 wider
        page_put(p, STYLE_PLAIN, "%*s", (int)cpu_numbers[i].width - (i == 0),
                 cpu_numbers[i].title);
    if (bar >= BAR_MIN)
        page_put(p, STYLE_PLAIN, "  |user #kern !irq");
}

static void use_of(const struct comparison *c, size_t i, struct cpu_use *out)
{
    const struct sysinfo_cpu *cpu = &c->now->cpus[i];

    cpu_use(dataset_cpu(c->before, cpu->id), cpu, c->summary.elapsed_ns, out);
}

// Draws bars side by side, with as few on a line as the number of lines allows.
static void draw_small_bars(struct page *p, const struct comparison *c)
{
    size_t count = c->now->cpu_count;
    unsigned room = page_rows_left(p), each = 1;

    if (room <= LINES_BELOW + ROWS_MIN_BARS)
        return;
    room -= LINES_BELOW + ROWS_MIN_BARS;
    while ((count + each - 1) / each > room)
        each++;
    unsigned width = (p->columns + 1) / each; // including a blank after it
    unsigned frame = SMALL_BAR_NAME_WIDTH + BAR_FRAME + 1;
    if (width < frame + SMALL_BAR_MIN)
        return;
    unsigned bar = width - frame < BAR_MAX ? width - frame : BAR_MAX;
    for (size_t i = 0; i < count; i++) {
        struct cpu_use u;
        if (i % each == 0)
            page_line(p);
        else
            page_put(p, STYLE_PLAIN, " ");
        use_of(c, i, &u);
        page_put(p, STYLE_PLAIN, SMALL_BAR_NAME, u.id);
        draw_bar(p, &u, bar);
    }
}

void draw_cpus(struct page *p, const struct comparison *c)
{
    size_t count = c->now->cpu_count;

    draw_cpu_titles(p, c);
    if (page_rows_left(p) < count + LINES_BELOW + ROWS_MIN) {
        draw_cpu(p, &c->summary.all, "all", c->summary.hz);
        draw_small_bars(p, c);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        char name[sizeof("cpu4294967295")];
        struct cpu_use u;
        use_of(c, i, &u);
        snprintf(name, sizeof(name), "cpu%" PRIu32, u.id);
        draw_cpu(p, &u, name, c->summary.hz);
    }
}
