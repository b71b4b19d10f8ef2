#include "graph_lines.h"

#include "user/libstrobe/strobe.h"

#include <inttypes.h>

#define DURATION_WIDTH 9u
#define BLANKS 12u
#define LINE_MAX (2 * DEPTH_MAX + 1024)

uint64_t graph_ns(const struct graph *g, uint64_t cycles)
{
    return g->tsc_hz
               ? (uint64_t)((long double)cycles * 1e9L / (long double)g->tsc_hz)
               : 0;
}

char *put_duration(char *at, uint32_t width, uint64_t ns)
{
    char field[NUMBER_SIZE + 8], *end = field + NUMBER_SIZE, *first = end;

    memset(end - BLANKS, ' ', BLANKS);
    *--first = 's';
    *--first = ns < 10000 ? 'n' : ns < 10000000 ? 'u' : 'm';
    if (ns >= 10000) {
        uint64_t tenths = ns < 10000000 ? (uint32_t)ns / 100 : ns / 100000;
        ns = tenths / 10;
        *--first = (char)('0' + (tenths - ns * 10));
        *--first = '.';
    }
    first = put_decimal_before(first, ns);
    if (first > end - width)
        first = end - width;
    return put(at, first, (uint32_t)(end - first));
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

char *put_function(const struct graph *g, char *at, uint32_t address)
{
    const struct calls_name *n = g->function(g->arg, address);

    return put(at, n->name, n->length);
}

char *put_call(const struct graph *g, char *at, const struct open_call *c)
{
    switch (c->kind) {
    case FUNCTION:
        return put_function(g, at, c->what);
    case INTERRUPT:
        return PUT(put_decimal(PUT(at, "[interrupt "), c->what), "]");
    case FAULT:
        return PUT(put_hex(PUT(at, "[page fault at "), c->what), "]");
    case CALL:
        break;
    }
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

static void make_begin(struct graph *g, struct graph_thread *t, uint32_t cpu)
{
    t->begin_cpu = cpu;
    t->begin_length = (uint32_t)snprintf(t->begin, sizeof(t->begin),
                                         "%3" PRIu32 "  %-16.31s ", cpu,
                                         g->thread(g->arg, t->thread));
}

char *graph_line(struct graph *g, struct graph_thread *t, uint32_t cpu,
                 const uint64_t *cycles, uint32_t depth)
{
    uint32_t indent = 2 + 2 * depth;

    if (!t->begin_length || t->begin_cpu != cpu)
        make_begin(g, t, cpu);
    char *at = put(new_line(g), t->begin, t->begin_length);
    if (cycles)
        at = put_duration(at, DURATION_WIDTH, graph_ns(g, *cycles));
    else
        indent += DURATION_WIDTH;
    for (uint32_t i = 0; i < indent; i += 8)
        memset(at + i, ' ', 8);
    return at + indent;
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
