// Begins, reads and ends a trace.
#include "cprofile.h"

#include "user/libstrobe/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TASK_CHECK_MS 100

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

// --- beginning --------------------------------------------------------------

static void begin(const struct settings *s, int phone, uint32_t task)
{
    struct calls_options o = s->options;
    uint32_t *chosen = choose_functions(&s->choice, 'F', &o.function_count);

    o.functions = (uint32_t)(uintptr_t)chosen;
    if (task)
        o.task = task;
    trace_begin(phone, &o);
    free(chosen);
}

// --- running ----------------------------------------------------------------

static void wait_for_end(uint32_t task)
{
    while (!interrupted && (!task || kill((pid_t)task, 0) == 0))
        poll(NULL, 0, task ? TASK_CHECK_MS : -1);
}

static int end(const struct settings *s, int phone)
{
    if (tracing_pause(phone, true) < 0)
        fail(1, "%s", tracing_problem(errno));
    struct calls_info *all = tracing_read(phone, false);
    int error = errno;

    tracing_end(phone);
    close(phone);
    if (!all)
        fail(1, "reading the trace: %s", tracing_problem(error));
    int status = show(s, all);
    free(all);
    return status;
}

int run(const struct settings *s)
{
    int phone = trace_phone();

    if (s->command[0]) {
        struct child child;
        child_start(&child, s->command);
        begin(s, phone, s->own_only ? (uint32_t)child.pid : 0);
        child_go(&child);
        int status = child_end(&child), shown = end(s, phone);
        free(child.path);
        return status ? status : shown;
    }
    signal(SIGINT, on_interrupt);
    signal(SIGTERM, on_interrupt);
    begin(s, phone, 0);
    wait_for_end(s->options.task);
    return end(s, phone);
}

// --- another one's trace ----------------------------------------------------

int get(const struct settings *s)
{
    struct calls_info *all = tracing_read(trace_phone(), false);

    if (!all)
        fail(1, "%s", tracing_problem(errno));
    int status = show(s, all);
    free(all);
    return status;
}

int reset(void)
{
    if (tracing_reset(trace_phone()) < 0)
        fail(1, "%s", tracing_problem(errno));
    return 0;
}
