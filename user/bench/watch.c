// The cost of monitoring with 10, 100 and 1,000 tasks: reading the list of all
// tasks from the sysinfo tree, and a refresh of top on the screen. And of tools
// that read the lists of the kernel's functions.
#define _GNU_SOURCE
#include "bench.h"

#include "user/libstrobe/sysinfo.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TASKS_MAX 1000
#define READS 10
#define SCREEN "/dev/tty0"
#define NOWHERE "/dev/null"

static pid_t sleepers[TASKS_MAX];
static unsigned count;

static uint32_t tasks(void)
{
    struct sysinfo_totals t;

    must(sysinfo_get_totals("system.totals", &t) == 0, "system.totals");
    return t.tasks;
}

// Creates sleeping children until there are `wanted` tasks, and waits until all
// of them sleep.
static void sleep_in(unsigned wanted)
{
    for (unsigned there = tasks(); there < wanted; there++) {
        pid_t pid = fork_partner();
        if (pid == 0) {
            for (;;)
                pause();
        }
        sleepers[count++] = pid;
    }
    usleep(100000);
}

static void end_all(void)
{
    for (unsigned i = 0; i < count; i++) {
        kill(sleepers[i], SIGKILL);
        waitpid(sleepers[i], NULL, 0);
    }
    count = 0;
}

static uint64_t read_tasks(void)
{
    static struct sysinfo_task list[TASKS_MAX + 100];
    uint64_t start = 0;

    for (int i = 0; i <= READS; i++) {
        if (i == 1) // the first read warms up
            start = rdtsc();
        must(sysinfo_get_data("system.tasks", list, sizeof(list)) > 0,
             "system.tasks");
    }
    return (rdtsc() - start) / READS;
}

// Returns the cycles of children that were waited for.
static uint64_t children(void)
{
    char path[SYSINFO_PATH_MAX];
    struct sysinfo_task t;

    snprintf(path, sizeof(path), "system.tasks.%d", (int)getpid());
    must(sysinfo_get_task(path, &t) == 0, path);
    return t.child_user + t.child_kernel;
}

// Returns the cycles that a program takes.
static uint64_t run(const char *terminal, char *const arguments[])
{
    uint64_t before = children();
    pid_t pid = fork();

    must(pid >= 0, "fork");
    if (pid == 0) {
        int fd = open(terminal, O_RDWR | O_NOCTTY);
        must(fd >= 0, terminal);
        dup2(fd, STDIN_FILENO);
        dup2(fd, STDOUT_FILENO);
        execvp(arguments[0], arguments);
        must(0, arguments[0]);
    }
    must(end_of(pid) == 0, "the tool's status");
    return children() - before;
}

static uint64_t run_top(char *refreshes)
{
    return run(SCREEN, (char *[]){ "top", "-d", "1", "-n", refreshes, NULL });
}

static void run_tool(const char *name, char *const arguments[])
{
    begin(name);
    printf("%s %llu\n", name, (unsigned long long)run(NOWHERE, arguments) / 2);
}

static void watch_tasks(unsigned tasks)
{
    char name[32];

    snprintf(name, sizeof(name), "system-tasks-%u", tasks);
    begin(name);
    sleep_in(tasks);
    printf("%s %llu\n", name, (unsigned long long)read_tasks() / 2);

    snprintf(name, sizeof(name), "top-%u", tasks);
    begin(name);
    // The fixed cost of starting and ending top is in both.
    uint64_t few = run_top("2"), many = run_top("4");
    must(many > few, "four refreshes cost no more than two");
    printf("%s %llu\n", name, (unsigned long long)(many - few) / 2 / 2);
}

void watch(void)
{
    atexit(end_all); // also if a step fails
    run_tool("sysinfo-list", (char *[]){ "sysinfo", NULL });
    run_tool("cprofile-true", (char *[]){ "cprofile", "-1", "true", NULL });
    run_tool("graph-true", (char *[]){ "graph", "true", NULL });
    watch_tasks(10);
    watch_tasks(100);
    watch_tasks(1000);
    end_all();
}
