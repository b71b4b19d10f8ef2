// strobe trace: prints files of `trace record`, as `trace` does in the guest,
// and writes them for other programs.
#include "strobe.h"

#include "trace_export.h"
#include "user/libtrace/report.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

static struct trace_choice choice;
static const char *ctf, *out;
static bool perfetto, dat;

static const struct tool_option options[] = {
    { 't', "thread", "thread_id", "Report only events of this thread",
      .number = &choice.thread, .max = INT_MAX, .flag = &choice.by_thread },
    { 'c', "cpu", "cpu", "Report only events on this CPU",
      .number = &choice.cpu, .max = TRACE_CPUS_MAX - 1,
      .flag = &choice.by_cpu },
    { 0, "perfetto", NULL, "A trace for ui.perfetto.dev", .flag = &perfetto },
    { 0, "ctf", "directory", "Common Trace Format, for babeltrace2",
      .text = &ctf },
    { 0, "trace-dat", NULL, "A trace.dat file, for trace-cmd and KernelShark",
      .flag = &dat },
    { 'o', "out", "file", "Write --perfetto or --trace-dat to this file",
      .text = &out },
    { 0 },
};
static const struct tool tool = {
    .usage =
        "strobe trace report|summary|--perfetto|--trace-dat|--ctf DIRECTORY "
        "FILE",
    .options = options,
    .notes = "report: a line for each event. summary: counts, rates, and times "
             "of threads,\nsystem calls and interrupts. FILE is from `trace "
             "record`.\n",
};

static const char *report(struct trace_file *f)
{
    return trace_report(stdout, f, &choice);
}

static const char *summary(struct trace_file *f)
{
    return trace_summary(stdout, f);
}

static const char *write_out(struct trace_file *f)
{
    FILE *to = result_open(out);
    const char *problem = perfetto ? trace_perfetto(to, f) : trace_dat(to, f);

    result_close(to, out);
    return problem;
}

static const char *write_ctf(struct trace_file *f)
{
    int error = 0;
    const char *problem = trace_ctf(ctf, f, &error);

    if (error == EEXIST)
        fail(1, "--ctf %s: it exists: name a new directory", ctf);
    if (error)
        fail(1, "--ctf %s: %s", ctf, strerror(error));
    return problem;
}

typedef const char *(*action)(struct trace_file *f);

// What the arguments at *at ask for; *at goes on to what follows.
static action choose(int argc, char *argv[], int *at)
{
    const char *word = *at < argc ? argv[*at] : "";
    bool reports = strcmp(word, "report") == 0;
    bool sums = strcmp(word, "summary") == 0;

    if (reports + sums + perfetto + dat + !!ctf != 1) {
        complain("trace: one of report, summary, --perfetto, --ctf and "
                 "--trace-dat, and a file");
        options_wrong(&tool);
    }
    if ((choice.by_thread || choice.by_cpu) && !reports) {
        complain("-t and -c are for report");
        options_wrong(&tool);
    }
    if (out && !perfetto && !dat) {
        complain("-o is for --perfetto and --trace-dat");
        options_wrong(&tool);
    }
    *at += reports || sums;
    return reports ? report : sums ? summary : ctf ? write_ctf : write_out;
}

int command_trace(int argc, char *argv[])
{
    static struct trace_file f;
    int at = options_parse(&tool, argc, argv);
    action act = choose(argc, argv, &at);
    const char *path = one_file(&tool, argc, argv, at);
    const char *problem = trace_file_open(&f, path);

    if (!problem) {
        problem = act(&f);
        trace_file_close(&f);
    }
    if (!problem)
        return 0;
    complain("%s: %s", path, problem);
    return 1;
}
