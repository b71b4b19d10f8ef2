// profile stat [-e EVENT,EVENT...] PROGRAM [ARGUMENTS]: counts events while a
// program runs, without sampling it.
#include "profile.h"

#include "user/libprofile/multiplexed.h"
#include "user/libstrobe/child.h"
#include "user/libstrobe/core_clock.h"
#include "user/libstrobe/options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME_WIDTH (SPROFILE_EVENT_NAME + 1)

#define DEFAULT_EVENTS                                                     \
    "task-clock,user-time,kernel-time,context-switches,cpu-migrations,"    \
    "page-faults,system-calls,cycles,instructions,branches,branch-misses," \
    "cache-references,cache-misses"

static struct stat_settings {
    struct sprofile_count_options options;
    bool alone, json;
    char **command;
} settings;

// Adds the events of a list "a,b,c"; several -e options accumulate.
static const char *take_events(void *options, char *list)
{
    struct sprofile_count_options *o = options;

    do {
        size_t size = strcspn(list, ",");
        if (o->events == SPROFILE_COUNTS_MAX)
            return "16 events at most";
        if (size == 0 || size >= sizeof(o->event[0]))
            return "invalid event name";
        memcpy(o->event[o->events++], list, size);
        list += size;
        list += *list == ',';
    } while (*list != '\0');
    return NULL;
}

static const struct tool_option options[] = {
    { 'e', NULL, "EVENT,...",
      "Events (default: most of these): task-clock, user-time, kernel-time, "
      "context-switches, cpu-migrations, page-faults, system-calls, as the "
      "kernel knows them; and of the CPU's performance counters cycles, "
      "ref-cycles, instructions, branches, branch-misses, cache-references, "
      "cache-misses, and by CPU model others (sysinfo system.profile.events), "
      "rNNMM (event NN, unit mask MM), with :u or :k in one mode only",
      .take = take_events, .arg = &settings.options },
    { 0, "no-children", NULL, "Without child tasks", .flag = &settings.alone },
    { 0, "json", NULL, "The counts as JSON", .flag = &settings.json },
    { 0 },
};
static const struct tool tool = {
    .usage = "profile stat [OPTIONS] PROGRAM [ARGUMENTS...]",
    .options = options,
    .notes = "Up to 16 events. If they exceed the counters they are "
             "multiplexed: counts are then estimates, with 95 % intervals. The "
             "exit status is the program's. (For a program named stat: profile "
             "./stat, or its path.)\n",
    .command = true,
};

static void parse(struct stat_settings *s, int argc, char *argv[])
{
    static char defaults[] = DEFAULT_EVENTS;

    s->command = argv + options_parse(&tool, argc, argv);
    s->options.flags =
        SPROFILE_O_FROM_EXEC | (s->alone ? 0 : SPROFILE_O_CHILDREN);
    if (s->options.events == 0)
        take_events(&s->options, defaults);
    if (!s->command[0]) {
        complain("nothing to count: give a program");
        options_wrong(&tool);
    }
}

// --- output -----------------------------------------------------------------

static bool is_counted(const struct sprofile_count *c)
{
    return c->why[0] == '\0' && c->running > 0;
}

static const char *why_not(const struct sprofile_count *c)
{
    if (c->why[0] != '\0')
        return c->why;
    return c->enabled > 0 ? "it never had a counter"
                          : "the program did not run";
}

static double value_of(const struct sprofile_counts *counts,
                       const struct sprofile_count_options *o, const char *name)
{
    for (uint32_t i = 0; i < counts->events; i++) {
        if (strcmp(o->event[i], name) == 0 && is_counted(&counts->count[i]))
            return multiplexed_estimate(&counts->count[i]);
    }
    return 0;
}

// Writes a count's ratio to another count, as perf stat does; or "".
static void meaning(char *out, size_t size,
                    const struct sprofile_counts *counts,
                    const struct sprofile_count_options *o, const char *name,
                    double value)
{
    static const struct {
        const char *of, *to, *text;
        double scale;
    } ratios[] = {
        { "instructions", "cycles", "a cycle", 1 },
        { "branch-misses", "branches", "% of the branches", 100 },
        { "cache-misses", "cache-references", "% of the references", 100 },
        { "L1-dcache-load-misses", "L1-dcache-loads", "% of the loads", 100 },
        { "LLC-load-misses", "LLC-loads", "% of the loads", 100 },
        { "stalled-cycles-frontend", "cycles", "% of the cycles", 100 },
        { "stalled-cycles-backend", "cycles", "% of the cycles", 100 },
    };

    out[0] = '\0';
    if (strcmp(name, "task-clock") == 0 && counts->elapsed_ns > 0)
        snprintf(out, size, "%.3f CPUs used", value / counts->elapsed_ns);
    for (size_t i = 0; i < sizeof(ratios) / sizeof(ratios[0]); i++) {
        double to = value_of(counts, o, ratios[i].to);
        if (strcmp(name, ratios[i].of) == 0 && to > 0)
            snprintf(out, size, "%.2f %s", value / to * ratios[i].scale,
                     ratios[i].text);
    }
}

static bool is_shared(const struct sprofile_count *c)
{
    return is_counted(c) && c->running < c->enabled;
}

static void print_turns(const struct sprofile_count *c, uint64_t tsc_hz)
{
    double margin = multiplexed_margin(c);

    if (isnan(margin))
        printf(" (a guess: counted in one turn, %.1f of %.1f ms)",
               1e3 * c->running / tsc_hz, 1e3 * c->enabled / tsc_hz);
    else
        printf(" (+- %.0f: counted in %.1f %% of the time)", margin,
               100.0 * c->running / c->enabled);
}

static void print_count(const struct sprofile_counts *counts,
                        const struct sprofile_count_options *o, uint32_t i)
{
    const struct sprofile_count *c = &counts->count[i];
    const char *name = o->event[i];
    char note[64];

    if (!is_counted(c)) {
        printf("%16s   %s: %s\n", "not counted", name, why_not(c));
        return;
    }
    double value = multiplexed_estimate(c);
    if (c->kind == SPROFILE_COUNT_NS)
        printf("%13.6f ms   %s", value / 1e6, name);
    else
        printf("%16.0f   %s", value, name);
    meaning(note, sizeof(note), counts, o, name, value);
    if (note[0] != '\0')
        printf("%*s# %s", (int)(NAME_WIDTH - strlen(name)), "", note);
    if (is_shared(c))
        print_turns(c, counts->tsc_hz);
    putchar('\n');
}

static void print_counters(const struct sprofile_counts *counts)
{
    bool shared = false;

    if (counts->general + counts->fixed == 0)
        return;
    printf("Counters: %u on each CPU", counts->general);
    if (counts->fixed > 0)
        printf(", and %u for one event each", counts->fixed);
    for (uint32_t i = 0; i < counts->events; i++)
        shared |= is_shared(&counts->count[i]);
    puts(shared ? "; the events take turns" : "");
}

static void print(const struct stat_settings *s, const struct child *child,
                  const struct sprofile_counts *counts)
{
    fputs("Counts of ", stdout);
    put_printable(stdout, child->path);
    printf(" (task %d)%s\n", child->pid,
           s->options.flags & SPROFILE_O_CHILDREN ? " and its children" : "");
    print_counters(counts);
    putchar('\n');
    for (uint32_t i = 0; i < counts->events; i++)
        print_count(counts, &s->options, i);
    printf("\n%14.9f s   elapsed\n", counts->elapsed_ns / 1e9);
    if (counts->tasks > 0)
        printf("%16u   of its tasks live on, and are not waited for\n",
               counts->tasks);
    core_clock_print(stdout, &counts->clock, counts->tsc_hz);
}

static void print_margin(const struct sprofile_count *c)
{
    double margin = is_shared(c) ? multiplexed_margin(c) : 0;

    if (!is_counted(c) || isnan(margin))
        fputs("null", stdout);
    else
        printf("%.0f", margin);
}

static void print_json(const struct stat_settings *s, const struct child *child,
                       const struct sprofile_counts *counts)
{
    printf("{\n  \"program\": ");
    json_string(stdout, child->path, strlen(child->path));
    printf(",\n  \"task\": %d, \"elapsed_ns\": %" PRIu64
           ", \"tsc_hz\": %" PRIu64 ", \"alive\": %u,\n",
           child->pid, counts->elapsed_ns, counts->tsc_hz, counts->tasks);
    printf("  \"general_counters\": %u, \"fixed_counters\": %u,\n",
           counts->general, counts->fixed);
    core_clock_print_json(stdout, &counts->clock);
    printf("  \"counts\": [");
    for (uint32_t i = 0; i < counts->events; i++) {
        const struct sprofile_count *c = &counts->count[i];
        const char *name = s->options.event[i];
        const char *why = is_counted(c) ? "" : why_not(c);
        printf("%s\n    {\"event\": ", i > 0 ? "," : "");
        json_string(stdout, name, strlen(name));
        printf(
            ", \"counted\": %s, \"value\": %" PRIu64 ", \"enabled\": %" PRIu64
            ", \"running\": %" PRIu64 ", \"margin\": ",
            is_counted(c) ? "true" : "false", c->value, c->enabled, c->running);
        print_margin(c);
        fputs(", \"why\": ", stdout);
        json_string(stdout, why, strlen(why));
        putchar('}');
    }
    printf("\n  ]\n}\n");
}

// --- counting ---------------------------------------------------------------

static void read_counts(struct profile_session *session,
                        struct sprofile_counts *counts)
{
    if (profile_count_read(session, counts) < 0)
        fail(1, "reading the counts: %s", kbox_problem(errno));
}

// Called before the program runs: an unknown event is a usage error.
static void check_events(const struct stat_settings *s,
                         const struct sprofile_counts *counts)
{
    for (uint32_t i = 0; i < counts->events; i++) {
        if (counts->count[i].kind != SPROFILE_COUNT_UNKNOWN)
            continue;
        complain("-e %s: no such event", s->options.event[i]);
        options_wrong(&tool);
    }
}

int run_stat(int argc, char *argv[])
{
    struct stat_settings *s = &settings;
    struct child child;
    struct profile_session session;
    struct sprofile_counts counts;

    parse(s, argc, argv);
    child_start(&child, s->command);
    if (profile_count_begin(&session, child.pid, &s->options) < 0)
        fail(1, "task %d: %s", child.pid,
             errno == EUSERS ? "16 programs are being counted already"
                             : kbox_problem(errno));
    read_counts(&session, &counts);
    check_events(s, &counts);
    child_go(&child);
    int status = child_end(&child);
    read_counts(&session, &counts);
    profile_end(&session);
    if (s->json)
        print_json(s, &child, &counts);
    else
        print(s, &child, &counts);
    free(child.path);
    return status;
}
