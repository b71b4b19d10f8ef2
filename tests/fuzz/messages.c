// Calls to kernel boxes and to other tasks' boxes, and the options of sampling
// sessions, of counts, and of traces of calls and of events.
#include "values.h"

#include <string.h>

#include <stdlib.h>

#include <strobe/calls.h>
#include <strobe/kbox.h>
#include <strobe/trace.h>

#include "user/libstrobe/sysinfo.h"

#define TRACED_MAX 128 // functions of a trace

// --- call traces

void functions_prepare(void)
{
    size_t count;
    struct sysinfo_function *all =
        sysinfo_read_function("system.functions", &count);

    for (size_t i = 0; i < count && i < FUNCTIONS_MAX; i++)
        shared->functions[shared->function_count++] = all[i].address;
    free(all);
}

uint32_t some_functions(struct draw *d, uint32_t *out, uint32_t most)
{
    uint32_t step = 1 + draw_below(d, 100), count = 0;
    for (uint32_t i = draw_below(d, step);
         i < shared->function_count && count < most; i += step)
        out[count++] = shared->functions[i];
    return count;
}

// Most are valid.
static void put_trace(struct draw *d, uint32_t *at)
{
    struct calls_options *o = (void *)at;
    uint32_t *functions = at + sizeof(*o) / sizeof(*at);

    *o = (struct calls_options){
        .size = draw_below(d, 16) ? sizeof(*o) : draw_word(d),
        .mode = PICK(d, CALLS_ARCS, CALLS_PATHS, CALLS_PATHS, CALLS_PATHS),
        .task = draw_below(d, 2) ? 0 : victim(d),
        .depth = PICK(d, 0, 0, 1, 2, 30, CALLS_DEPTH_MAX, CALLS_DEPTH_MAX + 1),
        .entries = PICK(d, 0, 1, 256, 300, 4096, 65536, 65537),
        .functions = (uint32_t)functions,
        .function_count = some_functions(d, functions, TRACED_MAX),
        .paused = draw_below(d, 4) == 0,
    };
    switch (draw_below(d, 16)) {
    case 0:
        functions[draw_below(d, TRACED_MAX)] = draw_word(d);
        break;
    case 1:
        o->function_count = PICK(d, 0, 1, 4096, 0xffffffff);
        break;
    case 2:
        o->functions = bad_address(d);
        break;
    case 3:
        o->mode = draw_below(d, 4);
        o->paused = draw_below(d, 4);
    }
}

static void put_event_trace(struct draw *d, uint32_t *at)
{
    struct trace_options *o = (void *)at;
    uint32_t *functions = at + sizeof(*o) / sizeof(*at);
    uint32_t all = TRACE_ALL_POINTS;

    *o = (struct trace_options){
        .size = draw_below(d, 16) ? sizeof(*o) : draw_word(d),
        .task = draw_below(d, 2) ? 0 : victim(d),
        .ring_bytes = PICK(d, 0, 0, 8192, 65536, 1, 0x7fffffff),
        .points = PICK(d, all, all, draw_word(d) & all, 1, 0, ~0u),
        .functions = (uint32_t)functions,
        .depth = PICK(d, 0, 0, 1, 30, CALLS_DEPTH_MAX, CALLS_DEPTH_MAX + 1),
        .flight_ms = PICK(d, 0, 0, 1, 100, 60000, ~0u),
        .calls_only = PICK(d, 0, 0, 1, 1, 2),
    };
    if (draw_below(d, 2))
        o->function_count = some_functions(d, functions, TRACED_MAX);
    if (o->calls_only && draw_below(d, 8))
        o->depth = 0;
    if (draw_below(d, 16) == 0)
        o->functions = bad_address(d);
}

// --- sessions

static void put_source(struct draw *d, uint32_t *at, uint32_t bytes)
{
    static const char *const sources[] = {
        "",         "clock",   "rtc",     "hpet", "lapic",  "pit",   "nmi-rtc",
        "nmi-hpet", "nmi-pit", "nmi-ipi", "pmc",  "cycles", "trace",
    };
    memset(at, 0, bytes);
    strcpy((char *)at, sources[draw_below(d, 13)]);
}

// struct sprofile_options and sprofile_count_options, which begin alike.
static void put_session(struct draw *d, uint32_t *at, bool counts)
{
    static const char *const events[] = {
        "task-clock",     "user-time",   "kernel-time",  "context-switches",
        "cpu-migrations", "page-faults", "system-calls", "cycles",
        "instructions",   "x",
    };
    memset(at, 0, ROOM_WORDS * 2);
    if (counts) {
        struct sprofile_count_options *o = (void *)at;
        o->size = draw_below(d, 16) ? sizeof(*o) : draw_word(d);
        o->flags = draw_below(d, 4);
        o->events = draw_below(d, 16) ? draw_below(d, 10) : draw_word(d);
        for (uint32_t i = 0; i < 10; i++)
            strcpy(o->event[i], events[draw_below(d, 10)]);
        return;
    }
    struct sprofile_options *o = (void *)at;
    o->size = draw_below(d, 16) ? sizeof(*o) : draw_word(d);
    o->flags = draw_below(d, 16) ? draw_below(d, 32) : draw_word(d);
    o->rate_hz = PICK(d, 0, 1, 100, 1000, 8000, 20000, 20000, 1u << 31);
    o->ring_bytes = PICK(d, 0, PAGE, 2 * PAGE, 65536, 5, 0x7fffffff);
    put_source(d, (uint32_t *)o->source, sizeof(o->source));
    if (strcmp(o->source, SPROFILE_POINT_SOURCE) == 0) {
        static const char *const points[] = {
            "",    "sched/switch",     "page/fault",         "irq/exit",
            "x/y", "heap/alloc:bytes", "syscall/enter:call", "page/fault:x",
        };
        strcpy(o->event, points[draw_below(d, 8)]);
        o->period = PICK(d, 0, 1, 1, 7, 1000, ~0u);
    }
}

// --- calls

// The arguments of the command arg[0]; its options are put at `more`.
static void put_command(struct draw *d, struct ipc_call *c, uint32_t *more)
{
    switch (c->arg[0]) {
    case SPROFILE_M_PAUSE:
        c->arg[1] = draw_below(d, 2);
        break;
    case SPROFILE_M_CALLS_BEGIN:
        put_trace(d, more);
        c->arg[1] = (uint32_t)more;
        break;
    case SPROFILE_M_TRACE_BEGIN:
        put_event_trace(d, more);
        c->arg[1] = (uint32_t)more;
        break;
    case 0:
    case SPROFILE_M_TASK_BEGIN:
    case SPROFILE_M_SYSTEM_BEGIN:
    case SPROFILE_M_COUNT_BEGIN:
        put_session(d, more, c->arg[0] == SPROFILE_M_COUNT_BEGIN);
        c->arg[1] = (uint32_t)more;
    }
}

// A call to a kernel box, or to a task's box; its options follow it.
uint32_t put_call(struct worker *w, struct draw *d, uint32_t *at)
{
    struct ipc_call *c = (void *)at;
    uint32_t *more = at + 32;

    memset(c, 0, sizeof(*c));
    c->id = draw_below(d, 8);
    c->method = PICK(d, 1, 1, 1, 2, 3, 4, 5, 6, 7, 1024, 1025, 9999);
    c->flags = PICK(d, 0, 0, 1, 2, 4, 8);
    c->arg[0] = draw_below(d, SPROFILE_M_CALLS_NAMES + 2);
    c->arg[1] = buffer(w, d);
    c->arg[2] = PICK(d, 0, 8, 264, 528, PAGE, 65536, 200000, 0xffffffff);
    c->arg[3] = draw_below(d, 2);
    c->retval = (int32_t)PICK(d, 0, 1, -1, -14, 0x7fffffff);
    if (c->method == IPC_M_SPROFILE_ALL) {
        put_command(d, c, more);
    } else if (c->method == IPC_M_CONNECT_ME_TO) {
        c->arg[0] = descriptor(w, d);
    }
    return sizeof(*c);
}
