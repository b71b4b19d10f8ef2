// ipctest [-b]: tests messages between tasks, on all CPUs (-b: what they cost)
//
// Prints `ok WHAT` for each promise that was kept; the first broken one ends it
// with 1. With -b it prints what messages cost, in instructions (under
// `tools/vm --icount 1 --smp 1`, as bench does).
#define _GNU_SOURCE
#include "ipctest.h"

#include "user/libstrobe/options.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#define SECONDS 100 // limit after which a hanging test is ended

int cpus;

static bool costs; // -b

static const struct tool_option options[] = {
    { 'b', "bench", NULL, "Measure the cost of messages; see tools/bench/run",
      .flag = &costs },
    { 0 },
};
static const struct tool tool = {
    .usage = "ipctest [OPTION]\n"
             "Exercises messages between tasks on all CPUs.",
    .options = options,
    .no_operands = "ipctest takes options only",
};

void broken(const char *file, int line, const char *what)
{
    printf("FAILED %s:%d: %s (%s)\n", file, line, what, strerror(errno));
    exit(1);
}

void run_on(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    check(sched_setaffinity(0, sizeof(set), &set) == 0);
}

pid_t start_server(int cpu, void (*serve)(int argument), int argument,
                   int *phone)
{
    pid_t pid = fork();

    check(pid >= 0);
    if (pid == 0) {
        run_on(cpu);
        serve(argument);
        _exit(0);
    }
    *phone = ipc_connect(pid);
    check(*phone >= 0);
    return pid;
}

void stop(pid_t pid)
{
    check(kill(pid, SIGKILL) == 0);
    check(waitpid(pid, NULL, 0) == pid);
}

int main(int argc, char **argv)
{
    cpu_set_t set;

    options_parse(&tool, argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (ipc_box() < 0)
        fail(1, "no answerbox (%s): is this Strobe?", strerror(errno));
    check(sched_getaffinity(0, sizeof(set), &set) == 0);
    cpus = CPU_COUNT(&set);
    alarm(SECONDS);
    if (costs) {
        benchmark();
        return 0;
    }
    test_calls();
    test_forwards();
    test_data();
    test_notifications();
    test_names();
    return 0;
}
