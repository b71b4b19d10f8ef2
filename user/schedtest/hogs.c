// CPU-bound processes. They share a page with the parent, which announces the
// phase of measurement there. Each process records its own CPU clock when it
// sees the new phase. A process that is not running at that moment records it
// later, but consumes no CPU time until then.
#define _GNU_SOURCE
#include "schedtest.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "user/libstrobe/strobe.h"

enum { WARM_UP, MEASURE, STOP };

struct times {
    uint64_t start, stop;
};
static struct {
    _Atomic int phase, ready;
    struct times times[];
} * shared;
static size_t shared_size;
static uint64_t measured_from;

uint64_t clock_ns(int clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        fail(2, "clock %d cannot be read", clock);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

void sleep_ns(uint64_t ns)
{
    struct timespec t = { ns / SECOND, (long)(ns % SECOND) };
    while (nanosleep(&t, &t) != 0)
        ;
}

void work_ns(uint64_t ns)
{
    uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        ;
}

int cpus_online(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

void bind_to_cpu(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < cpus_online(); i++) {
        if (cpu == -1 || cpu == i)
            CPU_SET(i, &set);
    }
    if (sched_setaffinity(0, sizeof(set), &set) != 0)
        fail(2, "cannot bind to CPU %d", cpu);
}

static _Noreturn void hog(struct times *t)
{
    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->phase) == WARM_UP)
        ;
    t->start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    while (atomic_load(&shared->phase) == MEASURE)
        ;
    t->stop = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    _exit(0);
}

// `late`: the thread competes for the CPU before.
static void become(unsigned user, bool late)
{
    if (late)
        work_ns(200 * MS);
    if (setuid(user) != 0)
        fail(2, "cannot become user %u", user);
}

void hogs_start(struct hog *hogs, int count, const int *nice,
                const unsigned *users)
{
    shared_size = sizeof(*shared) + (size_t)count * sizeof(struct times);
    shared = mmap(NULL, shared_size, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        fail(2, "no memory");
    for (int i = 0; i < count; i++) {
        hogs[i].pid = fork();
        if (hogs[i].pid == 0) {
            if (nice)
                setpriority(PRIO_PROCESS, 0, nice[i]);
            if (users)
                become(users[i], i == 0);
            hog(&shared->times[i]);
        }
        if (hogs[i].pid < 0)
            fail(2, "cannot start %d processes", count);
    }
    while (atomic_load(&shared->ready) < count)
        sleep_ns(MS);
}

void hogs_measure(void)
{
    measured_from = clock_ns(CLOCK_MONOTONIC);
    atomic_store(&shared->phase, MEASURE);
}

double hogs_stop(struct hog *hogs, int count)
{
    uint64_t elapsed = clock_ns(CLOCK_MONOTONIC) - measured_from;
    atomic_store(&shared->phase, STOP);
    for (int i = 0; i < count; i++) {
        int status;
        waitpid(hogs[i].pid, &status, 0);
        if (status != 0)
            fail(2, "a process ended with status %#x", status);
        const struct times *t = &shared->times[i];
        hogs[i].cpu_ms = (double)(t->stop - t->start) / MS;
    }
    munmap(shared, shared_size);
    return (double)elapsed / MS;
}
