// top [OPTIONS]: shows what tasks, threads and CPUs do, refreshed every second.
//
// It follows the top of the thesis that Strobe's monitoring is based on
// (appendix A.3 and figure B.1): every number is the difference of the last two
// data sets. See docs/sysinfo.md.
#include "top.h"

#include "data.h"
#include "screen.h"

#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define NS_PER_SECOND 1000000000L

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
    if (failed) {
        int error = errno;
        screen_leave(); // the message must not be on the page
        errno = error;
        sysinfo_fail(failed);
    }
    compare(&t->data[t->now], &t->data[next], &t->comparison);
    t->now = next;
}

// ---- options

static struct top top = { .delay = 1.0,
                          .iterations = -1,
                          .choice.task = SYSINFO_ALL };
static struct {
    bool batch, json;
    const char *delay, *number, *view, *order;
} settings;

static const struct tool_option options[] = {
    { 'd', "delay", "seconds", "Refresh interval (1)",
      .text = &settings.delay },
    { 'n', "number", "count", "Exit after this many refreshes",
      .text = &settings.number },
    { 'v', "view", "name", "tasks, threads, ipc, exceptions, syscalls or cpus",
      .text = &settings.view },
    { 'o', "order", "column", "Sort by this column of the view",
      .text = &settings.order },
    { 't', "task", "task_id", "Only this task, its threads and its calls",
      .task = &top.choice.task },
    { 'a', "active", NULL, "Only active rows",
      .flag = &top.choice.active_only },
    { 'b', "batch", NULL, "Print each refresh: for files and pipes",
      .flag = &settings.batch },
    { 0, "json", NULL, "Print one JSON object for each refresh (one)",
      .flag = &settings.json },
    { 0 },
};
static const struct tool tool = {
    .usage = "top [OPTIONS]",
    .options = options,
    .notes = "Key h shows the keys\n",
    .no_operands = "top takes options only (-t for a task)",
};

static void set_view(struct top *t, const char *name)
{
    const struct view *v = view_by_name(name);

    if (v) {
        choose_view(&t->choice, v);
        return;
    }
    complain("-v %s: no such view; available:", name);
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
    complain("-o %s: no such column in view %s; available:", name, v->name);
    for (unsigned i = 0; i < v->column_count; i++)
        fprintf(stderr, "  %-10s  %s\n", v->columns[i].name,
                v->columns[i].title);
    exit(USAGE_STATUS);
}

static void set_delay(struct top *t, const char *text)
{
    if (parse_delay(text, &t->delay))
        return;
    complain("-d %s: not a delay; from %g to %g seconds", text, DELAY_MIN,
             DELAY_MAX);
    options_wrong(&tool);
}

static void set_number(struct top *t, const char *text)
{
    uint32_t n;

    if (decimal(text, 1, INT32_MAX, &n)) {
        t->iterations = n;
    } else {
        complain("-n %s: not a number of refreshes, 1 or more", text);
        options_wrong(&tool);
    }
}

static void parse(struct top *t, int argc, char *argv[])
{
    options_parse(&tool, argc, argv);
    if (settings.delay)
        set_delay(t, settings.delay);
    if (settings.number)
        set_number(t, settings.number);
    if (settings.view)
        set_view(t, settings.view);
    if (settings.order)
        set_order(t, settings.order);
    if (settings.json && t->iterations < 0)
        t->iterations = 1;
}

// Fails if the task does not exist: its lists would be empty.
static void check_task(uint32_t id)
{
    char path[SYSINFO_PATH_MAX];
    struct sysinfo_task task;

    snprintf(path, sizeof(path), "system.tasks.%u", id);
    if (id == SYSINFO_ALL || sysinfo_get_task(path, &task) == 0)
        return;
    if (errno == ENOENT)
        fail(1, "no such task: %u (see tasks)", id);
    sysinfo_fail(path);
}

int main(int argc, char *argv[])
{
    struct top *t = &top;
    int status;

    choose_view(&t->choice, &views[0]);
    parse(t, argc, argv);
    check_task(t->choice.task);
    if (settings.batch || settings.json)
        status = batch(t, settings.json);
    else
        status = interactive(t);
    rows_free(&t->rows);
    dataset_free(&t->data[0]);
    dataset_free(&t->data[1]);
    return status;
}
