// stats [OPTION]: uptime, load; the audit, memory, kernel time, calls, locks.
//
// Without options the output is that of the stats utility of the thesis that
// Strobe's monitoring follows (appendix A.2 and B.2).
#include "stats.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define USAGE_STATUS 2

static const char usage_text[] =
    "usage: stats [OPTION]\n"
    "Without an option: time, uptime and load averages.\n"
    "  --audit       compare every CPU's accounts with its clock; status 1 if\n"
    "                they differ\n"
    "  --kernel      kernel time by subsystem\n"
    "  --syscalls    system calls: counts, errors, time\n"
    "    -t TASK     of this task only\n"
    "  --locks       locks: how often taken, waited for, held\n"
    "  --memory      what memory is used for\n"
    "  --json        JSON, times in cycles\n"
    "  --help        this text\n";

typedef int (*view)(const struct settings *s);

static _Noreturn void bad_usage(void)
{
    fputs(usage_text, stderr);
    exit(USAGE_STATUS);
}

static void choose(view *chosen, view wanted)
{
    if (*chosen != NULL && *chosen != wanted) {
        complain("one view at a time");
        bad_usage();
    }
    *chosen = wanted;
}

static view parse(struct settings *s, int argc, char *argv[])
{
    static const struct option options[] = {
        { "audit", no_argument, NULL, 'A' },
        { "kernel", no_argument, NULL, 'K' },
        { "syscalls", no_argument, NULL, 'S' },
        { "locks", no_argument, NULL, 'L' },
        { "memory", no_argument, NULL, 'M' },
        { "task", required_argument, NULL, 't' },
        { "json", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    view chosen = NULL;
    int c;

    while ((c = getopt_long(argc, argv, "t:h", options, NULL)) != -1) {
        switch (c) {
        case 'A':
            choose(&chosen, show_audit);
            break;
        case 'K':
            choose(&chosen, show_kernel);
            break;
        case 'S':
            choose(&chosen, show_syscalls);
            break;
        case 'L':
            choose(&chosen, show_locks);
            break;
        case 'M':
            choose(&chosen, show_memory);
            break;
        case 't':
            if (!sysinfo_parse_task("-t", optarg, &s->task))
                bad_usage();
            s->one_task = true;
            break;
        case 'j':
            s->json = true;
            break;
        case 'h':
            fputs(usage_text, stdout);
            exit(sysinfo_finish());
        default: // getopt_long has said what is wrong
            bad_usage();
        }
    }
    if (optind < argc) {
        complain("%s: stats takes options only", argv[optind]);
        bad_usage();
    }
    if (s->one_task && chosen != show_syscalls) {
        complain("-t goes with --syscalls");
        bad_usage();
    }
    return chosen != NULL ? chosen : show_uptime;
}

// ---- uptime

static void print_uptime(time_t now, uint64_t up, const uint32_t load[3])
{
    struct tm *tm = localtime(&now);

    printf("%02d:%02d:%02d, up %" PRIu64 " days, %" PRIu64 " hours, %" PRIu64
           " minutes, %" PRIu64 " seconds,\n      load average:",
           tm->tm_hour, tm->tm_min, tm->tm_sec, up / 86400, up / 3600 % 24,
           up / 60 % 60, up % 60);
    for (int i = 0; i < 3; i++)
        printf(" %" PRIu32 ".%02" PRIu32, load[i] / 100, load[i] % 100);
}

int show_uptime(const struct settings *s)
{
    struct sysinfo_uptime up;
    struct sysinfo_load l;
    time_t now = time(NULL);

    if (sysinfo_get_uptime("system.uptime", &up) < 0)
        sysinfo_fail("system.uptime");
    if (sysinfo_get_load("system.load", &l) < 0)
        sysinfo_fail("system.load");
    const uint32_t load[] = { sysinfo_hundredths(l.one),
                              sysinfo_hundredths(l.five),
                              sysinfo_hundredths(l.fifteen) };
    if (!s->json) {
        print_uptime(now, up.seconds, load);
        return 0;
    }
    printf("{\"time\": %lld, \"uptime\": ", (long long)now);
    sysinfo_print_json_record(stdout, SYSINFO_RECORD_UPTIME, &up);
    printf(", \"load\": ");
    sysinfo_print_json_record(stdout, SYSINFO_RECORD_LOAD, &l);
    putchar('}');
    return 0;
}

// ---- for all views

void *read_optional(const char *path, uint32_t record, size_t *count,
                    const char *what)
{
    void *records = sysinfo_read_records(path, record, count);

    if (records == NULL && errno == ENOENT)
        fail(1,
             "this kernel does not count %s (it has no node %s; `sysinfo` "
             "lists what it has): boot one that is built with it",
             what, path);
    if (records == NULL)
        sysinfo_fail(path);
    return records;
}

void add_percent(struct table *t, uint64_t part, uint64_t whole)
{
    table_add(t, "%.2f%%", whole > 0 ? 100.0 * part / whole : 0.0);
}

int main(int argc, char *argv[])
{
    struct settings settings = { 0 };
    view show = parse(&settings, argc, argv);
    int status = show(&settings);

    if (settings.json || show == show_uptime)
        putchar('\n');
    return sysinfo_finish() != 0 ? 1 : status;
}
