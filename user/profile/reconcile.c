// profile reconcile [OPTIONS] COMMAND: samples the kernel and traces its calls
// in the same run, and compares the functions' shares (docs/trace.md).
#include "profile.h"

#include "user/libprofile/choose_functions.h"
#include "user/libprofile/reconcile.h"
#include "user/libprofile/running_tasks.h"
#include "user/libprofile/trace_begin.h"
#include "user/libstrobe/child.h"
#include "user/libstrobe/options.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RATE_DEFAULT 4000
// Of each CPU: a second and more, in which the symbols are loaded at the first
// sample of a program, by code that is traced.
#define RING_BYTES (4u << 20)
#define ROWS_DEFAULT 20
#define EXPECTED_LEAST 10 // samples of 1 %: fewer would agree with anything

static struct reconcile_settings {
    struct sprofile_options options;
    struct event_names sources;
    uint32_t seconds, rows;
    bool json;
    char **command;
} settings = {
    .options = { .flags = SPROFILE_O_STACKS | SPROFILE_O_RANDOM,
                 .rate_hz = RATE_DEFAULT },
    .rows = ROWS_DEFAULT,
};

static const struct tool_option options[] = {
    { 'F', NULL, "HZ", "Samples a second on each CPU (4000)",
      .number = &settings.options.rate_hz, .min = 1, .max = SAMPLING_RATE_MAX },
    { 's', NULL, "SOURCE", "Sample source (the best one)",
      .take = sampling_take_sources, .arg = &settings.sources },
    { 'm', NULL, "SECONDS",
      "Size of the buffers, in seconds of samples (4 MiB a CPU)",
      .number = &settings.seconds, .min = 1, .max = SAMPLING_RING_SECONDS_MAX },
    { 0, "rows", "N",
      "Length of the table; 0: everything (20, of 1 % and more)",
      .number = &settings.rows, .max = INT_MAX },
    { 0, "json", NULL, "Everything as JSON; times are TSC cycles",
      .flag = &settings.json },
    { 0 },
};
static const struct tool tool = {
    .usage = "profile reconcile [OPTIONS] COMMAND [ARGUMENTS...]",
    .options = options,
    .notes = "Samples the kernel and traces its calls while the command runs, "
             "and compares the shares of its functions. The exit status is "
             "the command's.\n",
    .command = true,
};

static void parse(struct reconcile_settings *s, int argc, char *argv[])
{
    s->command = argv + options_parse(&tool, argc, argv);
    if (!s->command[0])
        complain("nothing to profile: give a command");
    else if (s->sources.count > 1)
        complain("-s: one source");
    else
        return;
    options_wrong(&tool);
}

// --- the run ----------------------------------------------------------------

struct run {
    struct events events;
    const struct functions *functions;
    struct calls_info *trace; // records behind it
    struct child child;
    int status;
};

static int begin_trace(struct run *r)
{
    int phone = trace_phone();
    struct calls_options o = { .mode = CALLS_PATHS };
    struct function_choice all = { 0 };
    uint32_t *chosen = choose_functions(&all, ' ', &o.function_count);

    r->functions = kernel_functions();
    o.functions = (uint32_t)(uintptr_t)chosen;
    trace_begin(phone, &o);
    free(chosen);
    return phone;
}

static void end_trace(struct run *r, int phone)
{
    if (tracing_pause(phone, true) < 0)
        fail(1, "%s", tracing_problem(errno));
    r->trace = tracing_read(phone, false);
    if (!r->trace)
        fail(1, "reading the trace: %s", tracing_problem(errno));
    tracing_end(phone);
    close(phone);
}

static bool can_read(int fd)
{
    struct pollfd fds = { fd, POLLIN, 0 };

    return poll(&fds, 1, 0) > 0;
}

// The trace begins before the samples and ends after them; only this program
// runs in between, and both leave it out.
static void run(const struct reconcile_settings *s, struct run *r)
{
    struct reading reading = { .events = &r->events };

    child_start(&r->child, s->command);
    int phone = begin_trace(r);
    uint32_t bytes = events_ring_bytes(&s->options, s->seconds);
    r->events.list[0].asked.ring_bytes = bytes ? bytes : RING_BYTES;
    events_begin(&r->events, 0, 0);
    running_add(&r->events, 0);
    int ended = child_watch();
    child_go(&r->child);
    while (!can_read(ended) && reading_take(&reading, -1, ended))
        ;
    reading_drain(&reading);
    if (!reading_end(&reading))
        r->status = 1;
    end_trace(r, phone);
    int status = child_end(&r->child);
    if (status)
        r->status = status;
}

// --- the report -------------------------------------------------------------

static void print_missing(const struct run *r)
{
    const struct calls_info *i = r->trace;
    const struct sprofile_info *info = &r->events.list[0].info;

    if (i->overflow + i->too_deep + i->no_frames)
        printf("MISSING: %" PRIu64
               " calls are in no path (cprofile says why)\n",
               i->overflow + i->too_deep + i->no_frames);
    if (info->lost)
        printf("MISSING: %" PRIu64
               " samples, for which the buffers had no room (-m)\n",
               info->lost);
    if (info->missed)
        printf("MISSING: %" PRIu64
               " samples, which came so late that the next was due: shares "
               "may be\n         wrong (a lower -F)\n",
               info->missed);
    if (info->throttled)
        printf("MISSING: %" PRIu64
               " samples, since sampling took too much time (a lower -F)\n",
               info->throttled);
}

static void print_header(const struct run *r, const struct reconciliation *c)
{
    const struct sprofile_info *info = &r->events.list[0].info;

    print_missing(r);
    printf("Sampled: %" PRIu64
           " times in the kernel, by %s at %u Hz (user mode "
           "%" PRIu64 ", idle %" PRIu64 ")\n",
           c->kernel, info->source, info->rate_hz, c->user, c->idle);
    printf("Traced:  %" PRIu64 " calls, %u functions\n", c->calls,
           r->trace->functions);
    printf("Removed: %" PRIu64 " samples of interrupts, %" PRIu64
           " of tracing, %" PRIu64 " without a traced caller\n",
           c->interrupts, c->stubs, c->outside);
    printf("Compared: %" PRIu64 " samples\n\n", c->compared);
}

static bool agrees(const struct reconciliation *c,
                   const struct reconciled_row *row)
{
    return fabs(reconciled_sigmas(c, row)) <= RECONCILED_SIGMAS;
}

static void print_row(const struct reconciliation *c,
                      const struct reconciled_row *row)
{
    double sigmas = reconciled_sigmas(c, row);

    printf("%7.2f%%", percent(row->in, c->kernel));
    if (!row->traced) {
        printf("         -                 -        -       -          -  ");
    } else {
        struct interval i = reconciled_interval(c, row);
        printf("  %7.2f%%  %6.2f - %5.2f%%  %6.2f%%  ",
               100 * reconciled_sampled(c, row), 100 * i.low, 100 * i.high,
               100 * reconciled_traced(c, row));
        printf(isfinite(sigmas) ? "%+6.1f" : "     -", sigmas);
        printf("%c  %9" PRIu64 "  ", agrees(c, row) ? ' ' : '!', row->calls);
    }
    put_printable(stdout, row->name);
    putchar('\n');
}

static bool is_shown(const struct reconciliation *c,
                     const struct reconciled_row *row)
{
    return row->traced ? reconciled_judged(c, row)
                       : row->in >= RECONCILED_LEAST * c->kernel;
}

static void print_judgement(const struct reconciliation *c)
{
    if (c->compared * RECONCILED_LEAST < EXPECTED_LEAST || !c->worst) {
        puts("There are too few samples for 1 %: a longer command, or -F HZ");
        return;
    }
    printf("%u of %u functions with 1 %% or more agree within %.0f sigmas%s\n",
           c->agreeing, c->judged, RECONCILED_SIGMAS,
           reconciled_judged(c, &c->others) ? " (all others count as one)"
                                            : "");
    printf("The least likely difference, %+.1f sigmas of ",
           reconciled_sigmas(c, c->worst));
    put_printable(stdout, c->worst->name);
    printf(c->chance < 0.1 ? ": by chance one of %u\n"
                             "differs as much in %.2g %% of all runs"
                           : ": by chance one of %u\n"
                             "differs as much in %.0f %% of all runs",
           c->judged, 100 * c->chance);
    if (!c->agree)
        printf("; less than %.1f %%: the profilers DIFFER",
               100 * RECONCILED_CHANCE);
    putchar('\n');
}

static void print_table(const struct reconcile_settings *s,
                        const struct reconciliation *c)
{
    uint32_t rows = 0;

    puts(" Sampled  Compared      95% interval   Traced  Sigmas      Calls  "
         "Function");
    for (uint32_t i = 0; i < c->count; i++) {
        const struct reconciled_row *row = &c->rows[i];
        if (!s->rows || (is_shown(c, row) && rows < s->rows)) {
            rows++;
            print_row(c, row);
        }
    }
    print_row(c, &c->others);
    putchar('\n');
    print_judgement(c);
}

static void print_json(const struct run *r, const struct reconciliation *c)
{
    const struct calls_info *t = r->trace;
    const struct sprofile_info *info = &r->events.list[0].info;
    const struct {
        const char *name;
        uint64_t value;
    } members[] = {
        { "rate_hz", info->rate_hz },
        { "lost", info->lost },
        { "missed", info->missed },
        { "throttled", info->throttled },
        { "user", c->user },
        { "idle", c->idle },
        { "kernel", c->kernel },
        { "interrupts", c->interrupts },
        { "tracing", c->stubs },
        { "outside", c->outside },
        { "compared", c->compared },
        { "calls", c->calls },
        { "own", c->own },
        { "tsc_hz", t->tsc_hz },
        { "missing", t->overflow + t->too_deep + t->no_frames },
        { "outside_caller", t->outside_caller },
        { "outside_own", t->outside_own },
    };

    printf("{\"source\": ");
    json_string(stdout, info->source, strlen(info->source));
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        printf(", \"%s\": %" PRIu64, members[i].name, members[i].value);
    printf(", \"agree\": %s, \"judged\": %u, \"within\": %u, \"chance\": %.9g",
           c->agree ? "true" : "false", c->judged, c->agreeing, c->chance);
    printf(",\n\"functions\": [");
    for (uint32_t i = 0; i < c->count; i++) {
        const struct reconciled_row *row = &c->rows[i];
        printf("%s\n  {\"traced\": %s, \"in\": %" PRIu64
               ", \"samples\": %" PRIu64 ", \"calls\": %" PRIu64
               ", \"own\": %" PRIu64 ", \"function\": ",
               i ? "," : "", row->traced ? "true" : "false", row->in,
               row->samples, row->calls, row->own);
        json_string(stdout, row->name, strlen(row->name));
        putchar('}');
    }
    printf("\n]}\n");
}

int run_reconcile(int argc, char *argv[])
{
    struct reconcile_settings *s = &settings;
    static struct run r;
    static const struct event_names no_events;
    struct call_paths paths;
    struct reconciliation result;

    parse(s, argc, argv);
    if (!events_choose(&r.events, &s->options, &s->sources, &no_events))
        options_wrong(&tool);
    run(s, &r);
    const char *problem =
        call_paths_merge(&paths, r.trace, (const void *)(r.trace + 1), -1);
    if (problem)
        fail(1, "the kernel's records: %s", problem);
    if (!reconcile(&result, &r.events.list[0].samples, r.functions, &paths))
        fail(1, "not enough memory, or the kernel's symbols cannot be read");
    if (s->json) {
        print_json(&r, &result);
    } else {
        print_header(&r, &result);
        print_table(s, &result);
    }
    return events_status(&r.events, r.status);
}
