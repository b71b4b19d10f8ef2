#include "graph_lines.h"

#include "user/libstrobe/strobe.h"

#include <inttypes.h>

#define DURATION_WIDTH 9u // up to 9999.9ms, 999999.9s
#define LINE_MAX (2 * DEPTH_MAX + 1024)

// Writes it so that it ends before `end`. Returns its first character.
static char *duration_before(const struct graph *g, char *end, uint64_t cycles)
{
    uint64_t ns = (uint64_t)(int64_t)((double)(int64_t)cycles * g->cycle_ns);
    uint32_t tenths;

    *--end = 's';
    if (ns < 10000) {
        *--end = 'n';
        return put_decimal_before(end, (uint32_t)ns);
    }
    if (ns < 10000000) {
        *--end = 'u';
        tenths = (uint32_t)ns / 100;
    } else if (ns < 10000000000) {
        *--end = 'm';
        tenths = (uint32_t)(ns / 100000);
    } else {
        tenths = (uint32_t)(ns / 100000000); // 13 years
    }
    *--end = (char)('0' + tenths % 10);
    *--end = '.';
    return put_decimal_before(end, tenths / 10);
}

char *put_duration(const struct graph *g, char *at, uint64_t cycles)
{
    char field[NUMBER_SIZE], *end = field + sizeof(field);
    char *first = duration_before(g, end, cycles);

    return (char *)memcpy(at, first, (size_t)(end - first)) + (end - first);
}

char *put_result(char *at, int32_t result)
{
    at = PUT(at, " = ");
    if (result < 0)
        *at++ = '-';
    return put_decimal(at, result < 0 ? -(uint32_t)result : (uint32_t)result);
}

// As %#x does.
static char *put_hex(char *at, uint32_t value)
{
    int digits = 1;

    while (digits < 8 && value >> 4 * digits)
        digits++;
    if (value)
        at = PUT(at, "0x");
    while (digits--)
        *at++ = "0123456789abcdef"[value >> 4 * digits & 15];
    return at;
}

char *put_other_call(char *at, const struct open_call *c)
{
    if (c->kind == INTERRUPT)
        return PUT(put_decimal(PUT(at, "[interrupt "), c->what), "]");
    if (c->kind == FAULT)
        return PUT(put_hex(PUT(at, "[page fault at "), c->what), "]");
    return PUT(put_text(PUT(at, "[system call "), trace_call_name(c->what)),
               "]");
}

void graph_flush(struct graph *g)
{
    fwrite(g->text, 1, g->length, g->out);
    g->length = 0;
    fflush(g->out);
}

static char *new_line(struct graph *g)
{
    if (sizeof(g->text) - g->length < LINE_MAX)
        graph_flush(g);
    return g->text + g->length;
}

static void make_begin(struct graph *g, struct graph_thread *t)
{
    int n = snprintf(t->begin, sizeof(t->begin), "%3" PRIu32 "  %-16.31s ",
                     t->cpu, g->thread(t->thread));

    memset(t->begin + n, ' ', sizeof(t->begin) - (size_t)n);
    t->begin_cpu = t->cpu;
    t->begin_length = (uint32_t)n + DURATION_WIDTH;
}

static inline char *begin_line(struct graph *g, struct graph_thread *t,
                               uint32_t depth)
{
    if (!t->begin_length || t->begin_cpu != t->cpu)
        make_begin(g, t);
    uint32_t length = t->begin_length + 2 + 2 * depth;
    char *line = new_line(g);
    put(line, t->begin, length < BEGIN_MAX ? length : BEGIN_MAX);
    if (length > BEGIN_MAX)
        memset(line + BEGIN_MAX, ' ', length - BEGIN_MAX);
    return line + length;
}

char *graph_line(struct graph *g, struct graph_thread *t, uint32_t depth)
{
    return begin_line(g, t, depth);
}

char *graph_timed_line(struct graph *g, struct graph_thread *t, uint32_t depth,
                       uint64_t cycles)
{
    char *at = begin_line(g, t, depth);

    duration_before(g, at - 2 * depth - 2, cycles);
    return at;
}

char *graph_other_line(struct graph *g, uint32_t cpu)
{
    char *at = new_line(g);

    return at + sprintf(at, "%3" PRIu32 "  ", cpu);
}

void graph_print_titles(struct graph *g)
{
    g->length += (uint32_t)sprintf(g->text + g->length, "CPU  %-16s %9s  %s\n",
                                   "Thread", "Duration", "Function");
}
