// top [OPTIONS]: what tasks, threads and CPUs do, refreshed every second.
//
// The top of the thesis that Strobe's monitoring follows (appendix A.3 and
// figure B.1): every number is the difference of the last two data sets. See
// docs/top.md.
#include "top.h"

#include "data.h"
#include "screen.h"

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <time.h>

#define USAGE_STATUS 2
#define NS_PER_SECOND 1000000000L

static const char usage_text[] =
    "Usage: top [OPTIONS]\n"
    "Options:\n"
    "  -d, --delay seconds   Refresh so often (1)\n"
    "  -n, --number count    End after so many refreshes\n"
    "  -v, --view name       Start with tasks, threads, ipc, exceptions,\n"
    "                        syscalls or cpus\n"
    "  -o, --order column    Sort by this column of the view\n"
    "  -t, --task task_id    Show only this task, its threads and its calls\n"
    "  -a, --active          Show only what was active\n"
    "  -b, --batch           Print each refresh: for files and pipes\n"
    "      --json            Print one JSON object for each refresh (one)\n"
    "  -h, --help            Print this usage information\n"
    "Key h shows the keys\n";

static _Noreturn void bad_usage(void)
{
    fputs(usage_text, stderr);
    exit(USAGE_STATUS);
}

bool parse_delay(const char *text, double *out)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value >= DELAY_MIN) ||
        value > DELAY_MAX)
        return false;
    *out = value;
    return true;
}

void top_sleep(double seconds)
{
    struct timespec left = {
        .tv_sec = (time_t)seconds,
        .tv_nsec = (long)((seconds - (time_t)seconds) * NS_PER_SECOND),
    };

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

void top_refresh(struct top *t)
{
    int next = 1 - t->now;
    const char *failed;

    dataset_free(&t->data[next]);
    failed = dataset_read(&t->data[next], t->choice.task);
    if (failed != NULL) {
        int error = errno;
        screen_leave(); // the message is not for the page
        errno = error;
        sysinfo_fail(failed);
    }
    compare(&t->data[t->now], &t->data[next], &t->comparison);
    t->now = next;
}

// ---- options

struct settings {
    bool batch, json;
    const char *order;
};

static void set_view(struct top *t, const char *name)
{
    const struct view *v = view_by_name(name);

    if (v != NULL) {
        choose_view(&t->choice, v);
        return;
    }
    complain("-v %s: there is no such view; there are:", name);
    for (unsigned i = 0; i < view_count; i++)
        fprintf(stderr, "  %-10s  %s\n", views[i].name, views[i].meaning);
    exit(USAGE_STATUS);
}

static void set_order(struct top *t, const char *name)
{
    const struct view *v = t->choice.view;
    int column = view_column_by_name(v, name);

    if (column >= 0) {
        t->choice.sort = (unsigned)column;
        return;
    }
    complain("-o %s: the view %s has no such column; it has:", name, v->name);
    for (unsigned i = 0; i < v->column_count; i++)
        fprintf(stderr, "  %-10s  %s\n", v->columns[i].name,
                v->columns[i].title);
    exit(USAGE_STATUS);
}

static void set_number(struct top *t, const char *text)
{
    char *end;

    errno = 0;
    t->iterations = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || t->iterations < 1) {
        complain("-n %s: not a number of refreshes, 1 or more", text);
        bad_usage();
    }
}

static void parse_option(struct top *t, struct settings *s, int option)
{
    switch (option) {
    case 'd':
        if (!parse_delay(optarg, &t->delay)) {
            complain("-d %s: not a delay; from %g to %g seconds", optarg,
                     DELAY_MIN, DELAY_MAX);
            bad_usage();
        }
        break;
    case 'n':
        set_number(t, optarg);
        break;
    case 'v':
        set_view(t, optarg);
        break;
    case 'o':
        s->order = optarg;
        break;
    case 't':
        if (!sysinfo_parse_task("-t", optarg, &t->choice.task))
            bad_usage();
        break;
    case 'a':
        t->choice.active_only = true;
        break;
    case 'b':
        s->batch = true;
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

static void parse(struct top *t, struct settings *s, int argc, char *argv[])
{
    static const struct option options[] = {
        { "delay", required_argument, NULL, 'd' },
        { "number", required_argument, NULL, 'n' },
        { "view", required_argument, NULL, 'v' },
        { "order", required_argument, NULL, 'o' },
        { "task", required_argument, NULL, 't' },
        { "active", no_argument, NULL, 'a' },
        { "batch", no_argument, NULL, 'b' },
        { "json", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int c;

    while ((c = getopt_long(argc, argv, "d:n:v:o:t:abh", options, NULL)) != -1)
        parse_option(t, s, c);
    if (optind < argc) {
        complain("%s: top takes options only (-t for a task)", argv[optind]);
        bad_usage();
    }
    if (s->order != NULL)
        set_order(t, s->order);
    if (s->json && t->iterations < 0)
        t->iterations = 1;
}

// A task that is not there would only give empty lists.
static void check_task(uint32_t id)
{
    char path[SYSINFO_PATH_MAX];
    struct sysinfo_task task;

    snprintf(path, sizeof(path), "system.tasks.%u", id);
    if (id == SYSINFO_ALL || sysinfo_get_task(path, &task) == 0)
        return;
    if (errno == ENOENT)
        fail(1, "there is no task %u (tasks lists those there are)", id);
    sysinfo_fail(path);
}

int main(int argc, char *argv[])
{
    static struct top t = { .delay = 1.0, .iterations = -1 };
    struct settings s = { 0 };
    int status;

    t.choice.task = SYSINFO_ALL;
    choose_view(&t.choice, &views[0]);
    parse(&t, &s, argc, argv);
    check_task(t.choice.task);
    status = s.batch || s.json ? batch(&t, s.json) : interactive(&t);
    rows_free(&t.rows);
    dataset_free(&t.data[0]);
    dataset_free(&t.data[1]);
    return status;
}
