// Batch mode: prints each refresh as text or JSON, for files, pipes and
// scripts.
#include "top.h"

#include "draw.h"

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#include <inttypes.h>
#include <string.h>

// ---- text

static void print_page(struct top *t, struct page *p)
{
    page_clear(p);
    draw_header(p, &t->comparison);
    page_line(p);
    draw_rows(p, &t->comparison, &t->choice, &t->rows, 0);
    if (p->broken)
        fail(1, "not enough memory for the list: end some tasks");
    for (unsigned i = 0; i < p->used; i++) {
        struct line *l = &p->lines[i];
        while (l->size > 0 && l->text[l->size - 1] == ' ')
            l->size--;
        printf("%.*s\n", (int)l->size, l->text);
    }
}

// ---- JSON: one object a line for each refresh

static void json_percent(const char *name, uint32_t percent)
{
    printf("\"%s\": %" PRIu32 ".%02" PRIu32, name, percent / 100,
           percent % 100);
}

static void json_cell(const struct column *column, union cell cell, uint64_t hz)
{
    char text[CELL_MAX];

    printf("\"%s\": ", column->name);
    switch (column->kind) {
    case COLUMN_TEXT:
        json_string(stdout, cell.text, strlen(cell.text));
        break;
    case COLUMN_STATE: {
        const char *name = sysinfo_state_name((uint32_t)cell.number);
        json_string(stdout, name, strlen(name));
        break;
    }
    case COLUMN_FLAG:
        fputs(cell.number ? "true" : "false", stdout);
        break;
    case COLUMN_SIZE:
        printf("%" PRId64, cell.number);
        break;
    case COLUMN_ID:
        if (cell.number == SYSINFO_ALL) {
            fputs("null", stdout);
            break;
        }
        // fall through
    default:
        fputs(cell_format(column, cell, hz, text), stdout);
    }
}

static void json_rows(const struct top *t)
{
    const struct view *v = t->choice.view;

    printf("\"view\": \"%s\", \"rows\": [", v->name);
    for (size_t r = 0; r < t->rows.count; r++) {
        fputs(r > 0 ? ", {" : "{", stdout);
        for (unsigned i = 0; i < v->column_count; i++) {
            if (i > 0)
                fputs(", ", stdout);
            json_cell(&v->columns[i], t->rows.rows[r].cells[i],
                      t->comparison.summary.hz);
        }
        putchar('}');
    }
    putchar(']');
}

static void json_cpus(const struct comparison *c)
{
    uint64_t hz = c->summary.hz;

    printf("\"cpus\": [");
    for (size_t i = 0; i < c->now->cpu_count; i++) {
        const struct sysinfo_cpu *cpu = &c->now->cpus[i];
        struct cpu_use u;
        cpu_use(dataset_cpu(c->before, cpu->id), cpu, c->summary.elapsed_ns,
                &u);
        const struct {
            const char *name;
            uint32_t percent;
            uint64_t cycles;
        } parts[] = {
            { "busy", u.busy, u.busy_total },
            { "idle", u.idle, u.idle_total },
            { "user", u.user, u.user_total },
            { "kernel", u.kernel, u.kernel_total },
            { "irq", u.irq, u.irq_total },
        };
        printf("%s{\"id\": %" PRIu32, i > 0 ? ", " : "", u.id);
        for (int j = 0; j < 5; j++) {
            fputs(", ", stdout);
            json_percent(parts[j].name, parts[j].percent);
            printf(", \"%s_ms\": %" PRIu64, parts[j].name,
                   sysinfo_milliseconds(parts[j].cycles, hz));
        }
        putchar('}');
    }
    putchar(']');
}

static void print_json(const struct top *t)
{
    const struct summary *s = &t->comparison.summary;
    const struct dataset *d = t->comparison.now;

    printf("{\"uptime\": ");
    sysinfo_print_json_record(stdout, SYSINFO_RECORD_UPTIME, &d->uptime);
    printf(", \"load\": ");
    sysinfo_print_json_record(stdout, SYSINFO_RECORD_LOAD, &d->load);
    printf(", \"elapsed_ns\": %" PRIu64, s->elapsed_ns);
    printf(", \"tasks\": {\"total\": %" PRIu32 ", \"new\": %" PRIu32
           ", \"ended\": %" PRIu32 ", \"short_lived\": %" PRIu32 ", ",
           s->tasks, s->created, s->ended, s->short_lived);
    json_percent("ended_cpu", s->ended_percent);
    printf("}, \"threads\": {\"total\": %" PRIu32 ", \"running\": %" PRIu32
           ", \"ready\": %" PRIu32 ", \"sleeping\": %" PRIu32
           ", \"lingering\": %" PRIu32 ", \"other\": %" PRIu32 "}, ",
           s->threads, s->running, s->ready, s->sleeping, s->lingering,
           s->other);
    json_cpus(&t->comparison);
    printf(", \"memory\": ");
    sysinfo_print_json_record(stdout, SYSINFO_RECORD_PHYSMEM, &d->memory);
    fputs(", ", stdout);
    json_rows(t);
    printf("}\n");
}

// ---- both

int batch(struct top *t, bool json)
{
    struct page page;

    page_init_growing(&page, PAGE_WIDE);
    top_refresh(t);
    for (bool first = true; t->iterations != 0; first = false) {
        top_sleep(t->delay);
        top_refresh(t);
        if (!rows_make(&t->comparison, &t->choice, &t->rows))
            fail(1, "not enough memory for the list: end some tasks");
        if (!first && !json)
            putchar('\n');
        if (json)
            print_json(t);
        else
            print_page(t, &page);
        if (sysinfo_finish() != 0)
            return 1;
        t->iterations -= t->iterations > 0;
    }
    page_free(&page);
    return 0;
}
