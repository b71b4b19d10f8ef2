// The fields of events as text: names for what has names, and for all others
// NAME=VALUE from the table of points.
#include "graph.h"
#include "points.h"
#include "report.h"

#include <inttypes.h>
#include <string.h>

#define ERRORS 4095u // results from -4095 to -1 are error numbers

static uint32_t word(const struct trace_event *e, uint32_t n)
{
    uint32_t w;

    memcpy(&w, e->fields + n * 4, sizeof(w));
    return w;
}

static void put_result(FILE *out, uint32_t result)
{
    if (result > UINT32_MAX - ERRORS)
        fprintf(out, " = -%" PRIu32, -result);
    else if (result < 65536)
        fprintf(out, " = %" PRIu32, result);
    else
        fprintf(out, " = %#" PRIx32, result);
}

static void put_switch(FILE *out, const struct trace_file *f,
                       const struct trace_event *e)
{
    static const char *const left[] = { "is preempted", "is preempted",
                                        "sleeps",       "waits",
                                        "stops",        "ends" };
    struct trace_sched_switch s;
    char from[32], to[32];

    memcpy(&s, e->fields, sizeof(s));
    trace_file_thread(f, s.prev, from);
    trace_file_thread(f, s.next, to);
    fprintf(out, " %s%s%s -> %s", from, s.prev ? " " : "",
            !s.prev                                    ? ""
            : s.state < sizeof(left) / sizeof(left[0]) ? left[s.state]
                                                       : "?",
            to);
}

static void put_wake(FILE *out, const struct trace_file *f,
                     const struct trace_event *e)
{
    char name[32];

    trace_file_thread(f, word(e, 0), name);
    fprintf(out, " %s for CPU %" PRIu32, name, word(e, 1));
}

// The error code of a page fault: Intel SDM vol. 3, 4.7.
static void put_fault(FILE *out, const struct trace_event *e)
{
    uint32_t error = word(e, 1);

    fprintf(out, " %#" PRIx32 ", %s of a page that is %s, by the %s",
            word(e, 0),
            error & 16  ? "execution"
            : error & 2 ? "write"
                        : "read",
            error & 1 ? "protected" : "not there",
            error & 4 ? "program" : "kernel");
}

// FIELD:BITS of the table, in the order of the record.
static void put_fields(FILE *out, const struct trace_event *e)
{
    const char *next = strchr(trace_point_fields(e->type), ' ');
    struct trace_field f;

    for (uint32_t at = 0, bytes; next && trace_point_field(&next, &f);
         at += bytes) {
        uint64_t value = 0;
        bytes = f.bits / 8;
        if (at + bytes > e->size || at + bytes > TRACE_FIELDS_MAX)
            return; // a record that is too short
        memcpy(&value, e->fields + at, bytes);
        fprintf(out, value < 65536 ? " %.*s=%" PRIu64 : " %.*s=%#" PRIx64,
                (int)f.length, f.name, value);
    }
}

static void put_counts(FILE *out, const struct trace_file *f,
                       const struct trace_event *e)
{
    struct trace_sched_pmc c;
    char name[32];

    memcpy(&c, e->fields, sizeof(c));
    trace_file_thread(f, c.thread, name);
    fprintf(out, " %s %s=%" PRIu64 " %s=%" PRIu64, name, f->counters[0],
            c.first, f->counters[1], c.second);
}

static void put_point(FILE *out, const struct trace_file *f,
                      const struct trace_event *e)
{
    switch (e->type) {
    case TRACE_sched_switch:
        put_switch(out, f, e);
        break;
    case TRACE_sched_pmc:
        put_counts(out, f, e);
        break;
    case TRACE_sched_wake:
        put_wake(out, f, e);
        break;
    case TRACE_syscall_enter:
        fprintf(out, " %s", trace_call_name(word(e, 0)));
        break;
    case TRACE_syscall_exit:
        fprintf(out, " %s", trace_call_name(word(e, 0)));
        put_result(out, word(e, 1));
        break;
    case TRACE_irq_enter:
    case TRACE_irq_exit:
        fprintf(out, " %" PRIu32, word(e, 0));
        break;
    case TRACE_irq_return:
        break;
    case TRACE_page_fault:
        put_fault(out, e);
        break;
    case TRACE_page_fault_end:
        put_result(out, word(e, 0));
        break;
    default:
        put_fields(out, e);
    }
}

// A return address is of the call before it.
static void put_function_call(FILE *out, const struct trace_file *f,
                              const struct trace_event *e)
{
    const struct function *caller =
        functions_find(&f->functions, word(e, 1) - 1);
    char function[TRACE_FUNCTION_BYTES];

    trace_file_function(f, word(e, 0), function);
    if (caller)
        fprintf(out, " %s by %s", function, caller->name);
    else
        fprintf(out, " %s by %#" PRIx32, function, word(e, 1));
}

void trace_event_text(FILE *out, const struct trace_file *f,
                      const struct trace_event *e)
{
    if (e->type < TRACE_POINTS)
        put_point(out, f, e);
    else if (e->type == TRACE_R_LOST)
        fprintf(out, " %" PRIu32 " events are missing here", word(e, 0));
    else if (e->type == TRACE_R_CALL)
        put_function_call(out, f, e);
    else
        fprintf(out, " %#" PRIx32, word(e, 0));
}
