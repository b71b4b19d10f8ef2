// Operations that start processes and programs. The same steps are measured on
// Linux with this program and the same BusyBox (tools/bench/linux).
#include "bench.h"

#include <unistd.h>

// The programs' environment, the same whichever way bench is started, so that
// PATH searches cost the same.
static char *const environment[] = { "PATH=/bin:/usr/bin", NULL };

static void require_success(pid_t child)
{
    must(child >= 0, "fork");
    must(end_of(child) == 0, "the child's status");
}

static void do_fork(int n)
{
    while (n-- > 0) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        require_success(child);
    }
}

static void run_program(const char *path, char *const arguments[])
{
    pid_t child = fork();

    if (child == 0) {
        execve(path, arguments, environment);
        _exit(127);
    }
    require_success(child);
}

static void do_exec(int n)
{
    static char *const arguments[] = { "bench", "nothing", NULL };

    while (n-- > 0)
        run_program("/bin/bench", arguments);
}

// With pipefail a pipeline fails if any of its programs does.
static void run_shell(int n, char *line)
{
    char *const arguments[] = { "sh", "-o", "pipefail", "-c", line, NULL };

    while (n-- > 0)
        run_program("/bin/sh", arguments);
}

static void do_two_programs(int n)
{
    run_shell(n, "echo x | cat >/dev/null");
}

static void do_three_programs(int n)
{
    run_shell(n, "seq 100 | grep 5 | wc -l >/dev/null");
}

const struct operation jobs[] = {
    { .name = "fork-exit-wait", do_fork, 50 },
    { .name = "fork-exec-wait", do_exec, 50 },
    { .name = "sh-two-programs", do_two_programs, 10 },
    { .name = "sh-three-programs", do_three_programs, 10 },
    { .name = NULL },
};
