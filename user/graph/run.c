// Begins a trace, prints it while it runs, and ends it.
#include "graph.h"

#include "user/libprofile/function_names.h"
#include "user/libstrobe/child.h"
#include "user/libstrobe/trace_reading.h"
#include "user/libstrobe/tracing.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (1024 * 1024)
#define BIT(point) (1u << TRACE_##point)
#define POINTS                                                                \
    (BIT(sched_switch) | BIT(sched_wake) | BIT(task_fork) | BIT(task_exec) |  \
     BIT(task_exit) | BIT(syscall_enter) | BIT(syscall_exit) |                \
     BIT(irq_enter) | BIT(irq_exit) | BIT(trap_exception) | BIT(page_fault) | \
     BIT(page_fault_end))

// --- beginning --------------------------------------------------------------

static _Noreturn void cannot_begin(const struct trace_options *o)
{
    int error = errno;
    struct calls_info info;
    int phone = tracing_phone();

    if (error == EBUSY && phone >= 0 && tracing_info(phone, &info) == 0 &&
        info.owner)
        fail(1,
             "task %u traces the kernel's calls already, and there is one "
             "trace at a time",
             info.owner);
    if (error == ESRCH)
        fail(1, "-t %u: no such task, or it has ended (see ps)", o->task);
    if (error == EUSERS)
        fail(1, "there are as many traces as there can be");
    if (error == ENOMEM)
        fail(1, "not enough memory for the trace: -D with a lower depth needs "
                "less");
    fail(1, "%s", kbox_problem(error));
}

static void begin(const struct settings *s, struct profile_session *session,
                  uint32_t task)
{
    struct trace_options o = s->options;
    uint32_t *chosen = choose_functions(&s->choice, 'F', &o.function_count);

    o.functions = (uint32_t)(uintptr_t)chosen;
    o.points = POINTS;
    if (task)
        o.task = task;
    if (profile_trace_begin(session, &o) < 0)
        cannot_begin(&o);
    free(chosen);
}

// --- reading ----------------------------------------------------------------

static void take_event(void *arg, const struct trace_event *e)
{
    graph_event(arg, e);
}

static void take_task(void *arg, const struct sprofile_task *t)
{
    names_of_task(t);
    graph_forget_names(arg);
}

// After the end: what is missing, first of all for whoever reads only that.
static void summarize(const struct graph *g, const struct trace_reader *reader,
                      const struct trace_info *info)
{
    fprintf(g->out,
            "%" PRIu64 " events, %" PRIu64 " of them calls; on %u CPUs\n",
            reader->events, g->calls, info->cpus);
    if (info->lost)
        fprintf(g->out,
                "MISSING: %" PRIu64 " events, lost for want of room: fewer "
                "functions (-F, -Z, -D), or -o FILE\n",
                info->lost);
    if (info->too_deep)
        fprintf(g->out, "MISSING: %" PRIu64 " calls, nested too deeply (-D)\n",
                info->too_deep);
    if (info->no_frames)
        fprintf(
            g->out,
            "MISSING: the calls of threads without memory for them, %" PRIu64
            " times\n",
            info->no_frames);
    if (g->no_memory)
        fprintf(g->out, "MISSING: threads, for want of memory in graph\n");
}

static void print_all(const struct settings *s, struct profile_session *session,
                      FILE *out)
{
    char *buffer = malloc(BUFFER_BYTES);
    struct trace_info info;

    if (!buffer)
        fail(1, "not enough memory");
    if (profile_trace_info(session, &info) < 0)
        fail(1, "the trace: %s", strerror(errno));
    static struct graph g; // large
    g.out = out;
    g.cycle_ns = 1e9 / (double)info.tsc_hz;
    g.min_cycles = s->min_ns / 1000000000 * info.tsc_hz +
                   s->min_ns % 1000000000 * info.tsc_hz / 1000000000;
    g.function = function_name;
    g.thread = name_of_thread;
    struct trace_reader reader = { .event = take_event,
                                   .task = take_task,
                                   .entry = name_is_wanted,
                                   .arg = &g };
    struct trace_reading reading = { .session = session,
                                     .buffer = buffer,
                                     .bytes = BUFFER_BYTES };
    int n;
    graph_print_titles(&g);
    // A full disk ends the trace: nobody would see more of it.
    while ((n = trace_reading_next(&reading)) >= 0 && !ferror(out)) {
        const char *problem = trace_reader_take(&reader, buffer, (size_t)n);
        if (problem)
            fail(1, "the kernel's trace: %s", problem);
        graph_flush(&g);
    }
    trace_reader_finish(&reader);
    profile_trace_info(session, &info);
    profile_end(session);
    graph_finish(&g);
    summarize(&g, &reader, &info);
    trace_reader_free(&reader);
    free(buffer);
}

static bool finish(const struct settings *s, FILE *out)
{
    bool good = !ferror(out);

    if (fflush(out) != 0)
        good = false;
    int error = errno;
    if (s->output && fclose(out) != 0 && good) {
        good = false;
        error = errno;
    }
    if (!good)
        complain("%s: %s", s->output ? s->output : "writing the graph",
                 strerror(error ? error : EIO));
    return good;
}

int run(const struct settings *s)
{
    struct profile_session session = { 0 };
    struct child child = { 0 };
    FILE *out = s->output ? fopen(s->output, "w") : stdout;
    int status = 0;

    if (!out)
        fail(1, "-o %s: %s", s->output, strerror(errno));
    if (s->command[0]) {
        trace_reading_end_at(SIGCHLD);
        child_start(&child, s->command);
        begin(s, &session, s->own_only ? (uint32_t)child.pid : 0);
        names_read();
        child_go(&child);
    } else {
        trace_reading_end_at(SIGINT);
        trace_reading_end_at(SIGTERM);
        begin(s, &session, 0);
        names_read();
    }
    print_all(s, &session, out);
    bool good = finish(s, out);
    if (s->command[0])
        status = child_end(&child);
    free(child.path);
    return status ? status : good ? 0 : 1;
}
