// trace list | record | snapshot | report | summary: what happened in the
// kernel, in order; docs/trace.md.
#include "trace.h"

#include "user/libstrobe/options.h"
#include "user/libstrobe/sensor_recorder.h"
#include "user/libtrace/report.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static struct settings s = { .output = TRACE_FILE_NAME,
                             .interval_ns = RECORDER_INTERVAL_NS };

static const char *take_points(void *points, char *names)
{
    uint32_t chosen = 0;

    for (char *p = strtok(names, ","); p; p = strtok(NULL, ",")) {
        uint32_t bits = trace_points_named(p);
        if (!bits) {
            complain("-e %s: there is no such event", p);
            trace_points_print_near(p, stderr);
            exit(1);
        }
        chosen |= bits;
    }
    *(uint32_t *)points |= chosen;
    return chosen ? NULL : "which events?";
}

// Two names, separated by a comma.
static const char *take_counters(void *counters, char *text)
{
    char(*names)[TRACE_COUNTER_NAME] = counters;
    const char *comma = strchr(text, ',');
    size_t first = comma ? (size_t)(comma - text) : 0;

    if (!first || first >= sizeof(names[0]) || !comma[1] ||
        strlen(comma + 1) >= sizeof(names[1]) || strchr(comma + 1, ','))
        return "not two events, such as cycles,cache-misses";
    snprintf(names[0], sizeof(names[0]), "%.*s", (int)first, text);
    snprintf(names[1], sizeof(names[1]), "%s", comma + 1);
    return NULL;
}

static const struct tool_option record_options[] = {
    { .meaning =
          "Records events of the kernel in a file, and prints it: context "
          "switches, system calls, interrupts, page faults and more, of all "
          "tasks; with -s also what programs and the kernel put into sensors; "
          "with -F or -Z calls of functions, and of the other events only "
          "sched/switch and those of -e.\nrecord:" },
    { 'e', NULL, "EVENT,...",
      "Those named GROUP/NAME, GROUP or * (trace list; all)",
      .take = take_points, .arg = &s.options.points },
    { 'F', NULL, "PATTERN,...",
      "Calls of the kernel's functions named like this, 'sched_*', or of such "
      "a file, 'kernel/mm/*'; after !, without them",
      .take = take_patterns, .arg = &s.choice, .flag = &s.functions },
    { 'Z', NULL, "BYTES", "Calls of functions of BYTES or more",
      .number = &s.choice.bytes, .min = 1, .max = FUNCTION_BYTES_MAX,
      .flag = &s.functions },
    { 't', NULL, "TASK", "Only what this task does", .number = &s.options.task,
      .min = 1, .max = INT_MAX },
    { '1', NULL, NULL, "Only what COMMAND's own task does",
      .flag = &s.own_only },
    { 'b', NULL, "KIB", "Memory for what is not written yet, on each CPU",
      .number = &s.options.ring_bytes, .min = 8, .max = 16384, .unit = 1024 },
    { 's', NULL, "SENSOR,...",
      "With these sensors: events of lists and rings, and values; paths below "
      "/sensors, folders, * and ? (sensors lists them)",
      .text = &s.sensors },
    { 0, "counters", "A,B",
      "With sched/pmc, which counts these events (cycles,instructions; "
      "docs/counters.md) for each thread that runs",
      .take = take_counters, .arg = s.options.counters },
    { 'i', NULL, "SECONDS",
      "Between samples of the sensors (0.001 to 3600; 0.1)",
      .take = recorder_take_duration, .arg = &s.interval_ns },
    { 'o', NULL, "FILE", "To FILE (" TRACE_FILE_NAME ")", .text = &s.output },
    { 0, "flight", "SEC",
      "Only the last SEC seconds, in memory: written at the end, and by trace "
      "snapshot; -b: at most so much on each CPU",
      .number = &s.options.flight_ms, .min = 1, .max = 86400, .unit = 1000 },
    { 0 },
};
static const struct tool tool = {
    .usage = "trace record [OPTIONS] [COMMAND [ARGUMENTS...]]\n"
             "       trace list\n"
             "       trace snapshot\n"
             "       trace report [-t THREAD] [-c CPU] [FILE]\n"
             "       trace summary [FILE]",
    .options = record_options,
    .notes = "Without COMMAND and -t it records until ^C. Its exit status is "
             "the command's (130 after ^C), or 0.\n"
             "snapshot: what a flight has now, in its FILE.1, FILE.2...; it "
             "goes on.\n"
             "report: a line for each event; -t, -c: of this thread, on this "
             "CPU.\n"
             "summary: counts, rates, and times of threads, calls and "
             "interrupts; how often each function was called.\n",
    .command = true,
};

static int list(void)
{
    for (uint32_t i = 0; i < TRACE_POINTS; i++)
        printf("%-18s %s\n", trace_point_name(i), trace_point_when(i));
    return 0;
}

// --- record -----------------------------------------------------------------

// sched/pmc is asked for by its name, or by that of what it counts.
static void choose_counters(struct trace_options *o)
{
    if (o->counters[0][0]) {
        o->points |= 1u << TRACE_sched_pmc;
    } else if (o->points & 1u << TRACE_sched_pmc) {
        strcpy(o->counters[0], "cycles");
        strcpy(o->counters[1], "instructions");
    }
}

static int record_command(int argc, char *argv[])
{
    s.command = argv + options_parse(&tool, argc, argv);
    if (s.functions) // which threads call them
        s.options.points |= trace_points_named("sched/switch");
    else if (!s.options.points)
        s.options.points = trace_points_named("*");
    choose_counters(&s.options);
    if (s.own_only && (s.options.task || !s.command[0])) {
        complain("-1 goes with a command, and without -t");
        options_wrong(&tool);
    }
    return record(&s);
}

// --- report and summary -----------------------------------------------------

static struct trace_choice choice;

static const struct tool_option report_options[] = {
    { 't', NULL, "THREAD", "Events of this thread", .number = &choice.thread,
      .max = INT_MAX, .flag = &choice.by_thread },
    { 'c', NULL, "CPU", "Events on this CPU", .number = &choice.cpu,
      .max = TRACE_CPUS_MAX - 1, .flag = &choice.by_cpu },
    { 0 },
};
static const struct tool report_tool = {
    .usage = "trace report [OPTIONS] [FILE]",
    .options = report_options,
    .notes = "A line for each event of FILE (" TRACE_FILE_NAME ").\n",
};
static const struct tool summary_tool = {
    .usage = "trace summary [FILE]",
    .options = (const struct tool_option[]){ { 0 } },
    .notes = "Counts, rates, and times of threads, calls and interrupts; how "
             "often each function was called.\n",
};

static int show(int argc, char *argv[], bool summary)
{
    const struct tool *shown = summary ? &summary_tool : &report_tool;
    static struct trace_file f;
    int first = options_parse(shown, argc, argv);

    if (argc - first > 1) {
        complain("%s: one file at a time", argv[first + 1]);
        options_wrong(shown);
    }
    const char *path = first < argc ? argv[first] : TRACE_FILE_NAME;
    const char *problem = trace_file_open(&f, path);
    if (!problem) {
        problem = summary ? trace_summary(stdout, &f)
                          : trace_report(stdout, &f, &choice);
        trace_file_close(&f);
    }
    if (problem)
        fail(1, "%s: %s", path, problem);
    if (fflush(stdout) != 0 || ferror(stdout))
        fail(1, "writing the text: %s", strerror(errno));
    return 0;
}

int main(int argc, char *argv[])
{
    const char *what = argc > 1 ? argv[1] : "";
    bool lists = strcmp(what, "list") == 0;

    if (strcmp(what, "record") == 0)
        return record_command(argc - 1, argv + 1);
    if (strcmp(what, "report") == 0 || strcmp(what, "summary") == 0)
        return show(argc - 1, argv + 1, strcmp(what, "summary") == 0);
    if ((lists || strcmp(what, "snapshot") == 0) && argc == 2)
        return lists ? list() : ask_for_snapshots();
    if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0)
        options_parse(&tool, argc, argv);
    if (lists || strcmp(what, "snapshot") == 0)
        complain("%s: %s takes nothing", argv[2], what);
    else if (what[0])
        complain("%s: no such command", what);
    options_wrong(&tool);
}
