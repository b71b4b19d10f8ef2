// bench [NAME...]: what operations cost, in instructions (tools/bench/run)
//
// Under `tools/vm --icount 1 --smp 1` the TSC counts two for each instruction,
// so half its difference is the number of instructions, the same in every run.
// Elsewhere the unit is half a TSC cycle. As the first process
// (init=/bin/bench) it prints what the boot took and switches the machine off.
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/libstrobe/strobe.h"

uint64_t rdtsc(void)
{
    uint64_t t;
    __asm__ volatile("rdtsc" : "=A"(t));
    return t;
}

// --- a step that fails ------------------------------------------------------

static char current_step[32] = "start";
static pid_t bench_itself;

void begin(const char *step)
{
    snprintf(current_step, sizeof(current_step), "%s", step);
    errno = 0;
}

void must(bool condition, const char *what)
{
    if (condition)
        return;
    complain("%s failed: %s%s%s", current_step, what, errno != 0 ? ": " : "",
             errno != 0 ? strerror(errno) : "");
    if (getpid() != bench_itself)
        _exit(1); // no flush: the buffered output is the parent's
    exit(1);
}

pid_t fork_partner(void)
{
    pid_t parent = getpid(), child = fork();

    must(child >= 0, "fork");
    if (child == 0 &&
        (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(1); // it had ended before
    return child;
}

int end_of(pid_t child)
{
    int status = 0;

    must(waitpid(child, &status, 0) == child, "waitpid");
    return status;
}

// --- operations -------------------------------------------------------------

// Runs the operation once to warm up, then measures it.
static uint64_t measure(const struct operation *o)
{
    uint64_t cycles = 0;

    for (int round = 0; round < 2; round++) {
        if (o->before)
            o->before();
        uint64_t start = rdtsc();
        o->run(o->times);
        cycles = rdtsc() - start;
        if (o->after)
            o->after();
    }
    return cycles / 2 / o->times;
}

// The same in a child process.
static uint64_t measure_in_child(const struct operation *o)
{
    uint64_t *cost = mmap(NULL, sizeof(*cost), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(cost != MAP_FAILED, "mmap");
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        *cost = measure(o);
        _exit(0);
    }
    if (end_of(child) != 0)
        exit(1); // the child has printed a message
    uint64_t result = *cost;
    munmap(cost, sizeof(*cost));
    return result;
}

static void print(const struct operation *o)
{
    begin(o->name);
    uint64_t cost = (o->in_child ? measure_in_child : measure)(o);
    printf("%s %llu\n", o->name, (unsigned long long)cost);
}

// --- selection --------------------------------------------------------------

static const struct group {
    const char *name;
    const struct operation *operations; // or `run`
    void (*measure)(void);
} groups[] = {
    { "calls", .operations = calls },      { "jobs", .operations = jobs },
    { "yields", .operations = yields },    { "sensors", .measure = sensors },
    { "watch", .measure = watch },         { "sampling", .measure = sampling },
    { "recording", .measure = recording },
};
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static const struct operation nothing[] = { { .name = NULL } };

static const struct operation *operations_of(const struct group *g)
{
    return g->operations != NULL ? g->operations : nothing;
}

static bool is_among(const char *name, char *names[])
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < GROUPS; i++) {
        if (strcmp(groups[i].name, name) == 0)
            return true;
        for (const struct operation *o = operations_of(&groups[i]);
             o->name != NULL; o++) {
            if (strcmp(o->name, name) == 0)
                return true;
        }
    }
    return false;
}

static void list(FILE *out)
{
    fprintf(out,
            "Usage: bench [NAME...]\n"
            "       bench --time COMMAND...\n"
            "Prints the cost of operations, in instructions (under tools/vm "
            "--icount 1 --smp 1;\nelse in two TSC cycles), and exits with "
            "status 1 at the first that fails.\nNAME is a group or one of "
            "its operations; default: all groups.\n"
            "--time prints what a command takes, with all that runs "
            "meanwhile.\n");
    for (size_t i = 0; i < GROUPS; i++) {
        fprintf(out, "  %s\n", groups[i].name);
        for (const struct operation *o = operations_of(&groups[i]);
             o->name != NULL; o++)
            fprintf(out, "    %s\n", o->name);
    }
}

static void check_names(char *names[])
{
    static char *help[] = { "-h", "--help", NULL };

    for (; *names != NULL; names++) {
        if (is_among(*names, help)) {
            list(stdout);
            exit(0);
        }
        if (!is_known(*names)) {
            complain("%s: no such operation", *names);
            list(stderr);
            exit(2);
        }
    }
}

static void run_group(const struct group *g, char *names[])
{
    bool all = !names[0] || is_among(g->name, names);

    if (all && g->measure) {
        begin(g->name);
        g->measure();
    }
    for (const struct operation *o = operations_of(g); o->name != NULL; o++) {
        if (all || is_among(o->name, names))
            print(o);
    }
}

// What a command takes, of all that runs meanwhile: "command INSTRUCTIONS" on
// standard error.
static int time_command(char *command[])
{
    uint64_t start = rdtsc();

    begin(command[0]);
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        execvp(command[0], command);
        must(false, "exec");
    }
    int status = end_of(child);
    fprintf(stderr, "command %llu\n",
            (unsigned long long)(rdtsc() - start) / 2);
    return status ? 1 : 0;
}

int main(int argc, char *argv[])
{
    uint64_t boot = rdtsc() / 2;

    if (argc > 1 && strcmp(argv[1], "nothing") == 0)
        return 0;
    bench_itself = getpid();
    if (bench_itself == 1) {
        printf("boot %llu\n", (unsigned long long)boot);
        fflush(stdout);
        reboot(RB_POWER_OFF);
    }
    if (argc > 2 && strcmp(argv[1], "--time") == 0)
        return time_command(argv + 2);
    check_names(argv + 1);
    // Print everything at the end: a terminal's interrupts would be measured.
    setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
    for (size_t i = 0; i < GROUPS; i++)
        run_group(&groups[i], argv + 1);
    return 0;
}
