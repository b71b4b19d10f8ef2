// strobe trace report|summary [OPTIONS] FILE: prints files of `trace record`,
// as `trace` does in the guest.
#include "strobe.h"

#include "user/libtrace/report.h"

#include <limits.h>
#include <string.h>

static const char *thread, *cpu;

static const struct tool_option options[] = {
    { 't', "thread", "thread_id", "Report only events of this thread",
      .text = &thread },
    { 'c', "cpu", "cpu", "Report only events on this CPU", .text = &cpu },
    { 0 },
};
static const struct tool tool = {
    .usage = "strobe trace report|summary [OPTIONS] FILE",
    .options = options,
    .notes = "report: a line for each event. summary: counts, rates, and times "
             "of threads,\nsystem calls and interrupts. FILE is from `trace "
             "record`.\n",
};

static _Noreturn void wrong(void)
{
    options_wrong(&tool);
}

static const char *print(struct trace_file *f, bool summary)
{
    struct trace_choice choice = { .by_thread = thread, .by_cpu = cpu };

    if (thread)
        choice.thread = number_argument("-t", thread, 0, INT_MAX, wrong);
    if (cpu)
        choice.cpu = number_argument("-c", cpu, 0, TRACE_CPUS_MAX - 1, wrong);
    return summary ? trace_summary(stdout, f)
                   : trace_report(stdout, f, &choice);
}

int command_trace(int argc, char *argv[])
{
    static struct trace_file f;
    int first = options_parse(&tool, argc, argv);
    bool summary = first < argc && strcmp(argv[first], "summary") == 0;

    if (argc - first != 2 || (!summary && strcmp(argv[first], "report") != 0)) {
        complain("trace: report or summary, and one file");
        wrong();
    }
    const char *path = argv[first + 1], *problem = trace_file_open(&f, path);
    if (!problem) {
        problem = print(&f, summary);
        trace_file_close(&f);
    }
    if (!problem)
        return 0;
    complain("%s: %s", path, problem);
    return 1;
}
