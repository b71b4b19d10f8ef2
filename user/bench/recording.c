// The cost of recording for the tool: the CPU time of `profile -o`, system
// calls included, for one more sample. The interrupt that takes the sample is
// not included (sampling.c).
//
// A program is recorded at two rates. The tool's fixed cost (reading symbols,
// its report) is the same both times, because the program has few places. But a
// sample may be of a place that only one of the two has seen, which costs the
// tool a symbol table, say: so the median of several measurements is printed.
#include "bench.h"

#include "user/libstrobe/strobe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TURNS 50000000u
#define SLOW_HZ 1000
#define FAST_HZ 8000
#define MEASUREMENTS 5
#define NS_PER_SECOND 1000000000ull

struct run {
    uint64_t samples, cpu_ns;
};

static uint32_t work(void)
{
    for (uint32_t i = 0; i < TURNS; i++)
        __asm__ volatile("" : "+r"(i));
    return 0;
}

static pid_t start_program(void)
{
    pid_t pid = fork();

    must(pid >= 0, "fork");
    if (pid > 0)
        return pid;
    on_deep_stack(work);
    _exit(0);
}

static uint64_t samples_in(FILE *report)
{
    static const char key[] = "\"taken\": ";
    char line[4096];
    unsigned long long n = 0;

    while (fgets(line, sizeof(line), report)) {
        const char *at = strstr(line, key);
        if (at)
            n = strtoull(at + strlen(key), NULL, 10);
    }
    return n;
}

// Records the program from now until its end.
static struct run record(pid_t program, unsigned hz, bool stacks)
{
    char rate[16], task[16];
    char *arguments[] = { "profile",
                          "--json",
                          "-F",
                          rate,
                          "-t",
                          task,
                          "-o",
                          "/tmp/bench.perf",
                          stacks ? "-g" : NULL,
                          NULL };
    struct rusage used;
    struct run r;
    int ends[2], status;

    snprintf(rate, sizeof(rate), "%u", hz);
    snprintf(task, sizeof(task), "%d", program);
    must(pipe(ends) == 0, "pipe");
    pid_t tool = fork();
    must(tool >= 0, "fork");
    if (tool == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(STDERR_FILENO);
        execv("/bin/profile", arguments);
        _exit(127);
    }
    close(ends[1]);
    FILE *report = fdopen(ends[0], "r");
    must(report != NULL, "memory");
    r.samples = samples_in(report);
    fclose(report);
    must(wait4(tool, &status, 0, &used) == tool, "wait4");
    must(status == 0 && r.samples > 0, "profile -o");
    r.cpu_ns = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * NS_PER_SECOND +
               (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000ull;
    unlink("/tmp/bench.perf");
    return r;
}

static struct run record_program(unsigned hz, bool stacks)
{
    pid_t program = start_program();
    struct run r = record(program, hz, stacks);

    must(end_of(program) == 0, "the program's status");
    return r;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS_PER_SECOND + t.tv_nsec;
}

static uint64_t measure(bool stacks)
{
    uint64_t start = rdtsc(), start_ns = now_ns();
    struct run slow = record_program(SLOW_HZ, stacks);
    struct run fast = record_program(FAST_HZ, stacks);
    uint64_t cycles = rdtsc() - start, ns = now_ns() - start_ns;

    must(fast.samples > slow.samples && fast.cpu_ns > slow.cpu_ns,
         "recordings at two rates");
    return (fast.cpu_ns - slow.cpu_ns) * cycles / ns / 2 /
           (fast.samples - slow.samples);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void print_median(const char *name, bool stacks)
{
    uint64_t cost[MEASUREMENTS];

    begin(name);
    for (unsigned i = 0; i < MEASUREMENTS; i++)
        cost[i] = measure(stacks);
    qsort(cost, MEASUREMENTS, sizeof(cost[0]), by_size);
    printf("%s %llu\n", name, (unsigned long long)cost[MEASUREMENTS / 2]);
}

void recording(void)
{
    print_median("recorded-pc", false);
    print_median("recorded-stack", true);
}
