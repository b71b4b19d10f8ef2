// kgmon [OPTIONS]: a histogram of the running kernel and its calls, for gprof.
//
// As BSD's kgmon; docs/trace.md.
#include "kgmon.h"

#include "user/libprofile/choose_functions.h"
#include "user/libprofile/gmon_file.h"
#include "user/libprofile/trace_begin.h"
#include "user/libstrobe/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RATE_MAX 100000

static bool begins, stops, resets, asks, ends;
static const char *dump_path, *source;
static struct function_choice choice;
static uint32_t rate;

static const struct tool_option options[] = {
    { 'b', "begin", NULL, "Begin in the background, or go on after -h",
      .flag = &begins },
    { 'f', "functions", "PATTERNS",
      "Which functions' calls: 'sched_*,kernel/mm/*,!lib/*' (all)",
      .take = take_patterns, .arg = &choice },
    { 'F', "rate", "HZ", "Samples a second on each CPU (1000)", .number = &rate,
      .min = 1, .max = RATE_MAX },
    { 'S', "source", "SOURCE", "Sample source (the best one)",
      .text = &source },
    { 'h', "halt", NULL, "Stop for a while", .flag = &stops },
    { 'p', "profile", "FILE", "Write gmon.out to FILE", .text = &dump_path },
    { 'r', "reset", NULL, "Set all counts to 0", .flag = &resets },
    { 's', "state", NULL, "Print what there is (the default)", .flag = &asks },
    { 'e', "end", NULL, "End it", .flag = &ends },
    { 0 },
};
static const struct tool tool = {
    .usage = "kgmon [OPTIONS]",
    .options = options,
    .no_operands = "kgmon takes options only",
    .notes = "Several at once are done in the order above. On the developer's "
             "machine:\n    gprof build/kernel.elf FILE\n",
};

// --- beginning --------------------------------------------------------------

static int begin(void)
{
    struct kgmon_begin b = { .calls.mode = CALLS_ARCS,
                             .samples.rate_hz = rate };

    if (source && strlen(source) >= sizeof(b.samples.source))
        fail(1, "-S %s: %s", source, kbox_problem(ENOENT));
    snprintf(b.samples.source, sizeof(b.samples.source), "%s",
             source ? source : "");
    b.calls.functions = (uint32_t)(uintptr_t)choose_functions(
        &choice, 'f', &b.calls.function_count);
    return background_begin(&b);
}

// --- commands ---------------------------------------------------------------

static int connect_background(void)
{
    int ns = ns_phone();
    int phone = ns < 0 ? -1 : ns_connect(ns, KGMON_NAME, false);

    if (phone < 0 && errno != ENOENT)
        fail(1, "the naming service: %s", strerror(errno));
    return phone;
}

static void command(int phone, uint32_t method, uint32_t arg)
{
    struct ipc_call call = { .method = method, .arg = { arg } };

    if (ipc_request(phone, &call) < 0)
        fail(1, "%s",
             errno == EPERM ? "another user has begun it"
                            : tracing_problem(errno));
}

static struct kgmon_state get_state(int phone)
{
    struct kgmon_state s;

    if (ipc_read(phone, &s, sizeof(s), (const uint32_t[4]){ KGMON_STATE }) !=
        sizeof(s))
        fail(1, "%s",
             errno == EPERM ? "another user has begun it" : strerror(errno));
    return s;
}

// --- the file ---------------------------------------------------------------

static uint64_t *get_bins(int phone, const struct kgmon_state *s)
{
    uint32_t *bins = malloc((s->bins + 1) * sizeof(*bins));
    uint64_t *wide = malloc((s->bins + 1) * sizeof(*wide));
    uint32_t have = 0;

    if (!bins || !wide)
        fail(1, "not enough memory for the histogram");
    while (have < s->bins) {
        int n = ipc_read(phone, bins + have, (s->bins - have) * sizeof(*bins),
                         (const uint32_t[4]){ KGMON_BINS, have });
        if (n < (int)sizeof(*bins))
            fail(1, "reading the histogram: %s", strerror(errno));
        have += (uint32_t)n / sizeof(*bins);
    }
    for (uint32_t i = 0; i < s->bins; i++)
        wide[i] = bins[i];
    free(bins);
    return wide;
}

static void put_arcs(FILE *out)
{
    int phone = tracing_phone();
    struct calls_info *info = phone < 0 ? NULL : tracing_read(phone, false);

    if (!info)
        fail(1, "reading the calls: %s", tracing_problem(errno));
    const struct calls_arc *arcs = (const void *)(info + 1);
    for (uint32_t i = 0; i < info->records; i++)
        gmon_put_arc(out, arcs[i].from, arcs[i].to, arcs[i].count);
    if (info->overflow)
        complain("MISSING: %" PRIu64 " calls, for which there was no room",
                 info->overflow);
    free(info);
}

static void dump(int phone, const char *path)
{
    struct kgmon_state s = get_state(phone);
    struct gmon_histogram h = {
        .low = s.low,
        .bins = s.bins,
        .bin_bytes = KGMON_BIN_BYTES,
        .counts = get_bins(phone, &s),
        .rate = s.info.event[0] ? 0 : s.info.rate_hz,
    };
    FILE *out = fopen(path, "w");

    if (!out)
        fail(1, "-p %s: %s", path, strerror(errno));
    gmon_put_head(out);
    gmon_put_histogram(out, &h);
    put_arcs(out);
    bool bad = ferror(out);
    if (fclose(out) != 0 || bad)
        fail(1, "-p %s: %s", path, strerror(errno));
}

static void print_state(int phone)
{
    struct kgmon_state s = get_state(phone);
    struct calls_info info;

    printf("kgmon: %s\n", s.paused ? "stopped (-b goes on)" : "running");
    printf(
        "Samples: %" PRIu64 " in the kernel, %" PRIu64 " in programs, %" PRIu64
        " idle; %" PRIu64 " lost; source %s at %u Hz\n",
        s.kernel, s.user, s.idle, s.info.lost, s.info.source, s.info.rate_hz);
    if (s.outside)
        printf("MISSING: %u samples outside of the kernel's functions\n",
               s.outside);
    if (tracing_info(tracing_phone(), &info) == 0)
        printf("Calls:   of %u functions; %u of %u arcs used; %" PRIu64
               " calls MISSING\n",
               info.functions, info.most, info.entries, info.overflow);
}

static int no_background(void)
{
    if (!stops && !resets && !dump_path && !ends) {
        puts("kgmon: not running (-b begins)");
        return 0;
    }
    complain("not running: kgmon -b begins");
    return 1;
}

int main(int argc, char *argv[])
{
    options_parse(&tool, argc, argv);
    int phone = connect_background();

    if (begins && phone < 0) {
        int status = begin();
        phone = status ? -1 : connect_background();
        if (phone < 0)
            return 1;
    } else if (begins) {
        command(phone, KGMON_PAUSE, 0);
    }
    if (phone < 0)
        return no_background();
    if (stops)
        command(phone, KGMON_PAUSE, 1);
    if (dump_path)
        dump(phone, dump_path);
    if (resets)
        command(phone, KGMON_RESET, 0);
    if (asks || !(begins || stops || dump_path || resets || ends))
        print_state(phone);
    if (ends)
        command(phone, KGMON_END, 0);
    if (fflush(stdout) == 0)
        return 0;
    complain("writing: %s", strerror(errno));
    return 1;
}
