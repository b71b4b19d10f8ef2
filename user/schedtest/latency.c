// The wake-up latency of an interactive thread that competes with threads that
// never sleep. A thread is classified as interactive by its history: this one
// has only started programs so far, so it sleeps once before it is measured.
#define _GNU_SOURCE
#include "schedtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "user/libstrobe/strobe.h"

#define SLEEP_MIN_NS (5 * MS)
#define SLEEP_RANGE_NS (10 * MS)
#define WORK_NS (200000ull)
#define LATENCY_MAX_MS 2.0

static uint32_t random_below(uint32_t n)
{
    static uint32_t state = 12345;
    state = state * 1664525 +
            1013904223; // linear congruential, from Numerical Recipes
    return (uint32_t)((uint64_t)state * n >> 32);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// Sleeps until a random time. Returns how much later it ran, in ns.
static uint64_t one_wake_up(void)
{
    uint64_t due =
        clock_ns(CLOCK_MONOTONIC) + SLEEP_MIN_NS + random_below(SLEEP_RANGE_NS);
    struct timespec t = { due / SECOND, (long)(due % SECOND) };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
    return clock_ns(CLOCK_MONOTONIC) - due;
}

bool test_latency(int hogs_per_cpu, int seconds)
{
    int count = hogs_per_cpu * cpus_online();
    uint64_t most = (uint64_t)seconds * SECOND / SLEEP_MIN_NS, n = 0, sum = 0;
    struct hog *hogs = calloc((size_t)count, sizeof(*hogs));
    uint64_t *latency = calloc(most, sizeof(*latency));
    if (!hogs || !latency)
        fail(2, "no memory");
    hogs_start(hogs, count, NULL, NULL);
    sleep_ns(WARM_UP_NS);
    hogs_measure();
    uint64_t end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)seconds * SECOND;
    while (n < most && clock_ns(CLOCK_MONOTONIC) < end) {
        latency[n] = one_wake_up();
        sum += latency[n++];
        work_ns(WORK_NS);
    }
    hogs_stop(hogs, count);
    qsort(latency, n, sizeof(*latency), by_value);
    double worst = (double)latency[n - 1] / MS;
    bool ok = worst < LATENCY_MAX_MS;
    printf("one interactive thread beside %d CPU-bound ones on each of %d CPU%s"
           " for %d s\n",
           hogs_per_cpu, cpus_online(), cpus_online() == 1 ? "" : "s", seconds);
    printf("  %llu wake-ups; it ran %.3f ms late on average, 99 %% within %.3f "
           "ms\n",
           (unsigned long long)n, (double)sum / (double)n / MS,
           (double)latency[n * 99 / 100] / MS);
    printf("  worst %.3f ms, at most %.0f ms: %s\n\n", worst, LATENCY_MAX_MS,
           ok ? "ok" : "LATE");
    free(latency);
    free(hogs);
    return ok;
}
