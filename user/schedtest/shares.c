// Shares of the CPU: equal ones, and by nice.
#include "schedtest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "user/libstrobe/strobe.h"

#define EQUAL_WITHIN 2.0 // percent of the mean
#define NICE_WITHIN 1.0  // percent of the CPU

// Strobe's weights: a step of nice is a factor of 1.25 (docs/scheduler.md).
#define NICE_STEP 1.25

static double measure(struct hog *hogs, int count, const int *nice, int seconds)
{
    hogs_start(hogs, count, nice);
    sleep_ns(WARM_UP_NS);
    hogs_measure();
    sleep_ns((uint64_t)seconds * SECOND);
    return hogs_stop(hogs, count);
}

bool test_fair(int threads, int seconds)
{
    struct hog *hogs = calloc((size_t)threads, sizeof(*hogs));
    if (!hogs)
        fail(2, "no memory");
    double elapsed = measure(hogs, threads, NULL, seconds);
    double sum = 0, worst = 0;
    for (int i = 0; i < threads; i++)
        sum += hogs[i].cpu_ms;
    double mean = sum / threads;
    printf("%d equal CPU-bound threads on %d CPU%s for %.1f s\n", threads,
           cpus_online(), cpus_online() == 1 ? "" : "s", elapsed / 1000);
    for (int i = 0; i < threads; i++) {
        double off = 100 * (hogs[i].cpu_ms - mean) / mean;
        printf("  thread %-3d %10.1f ms CPU %+7.2f %%\n", i + 1, hogs[i].cpu_ms,
               off);
        worst = fmax(worst, fabs(off));
    }
    bool ok = worst <= EQUAL_WITHIN;
    printf("  mean %.1f ms; worst %.2f %% off it, allowed are %.0f %%: %s\n\n",
           mean, worst, EQUAL_WITHIN, ok ? "ok" : "UNFAIR");
    free(hogs);
    return ok;
}

static bool test_nice_pair(int nice, int seconds)
{
    struct hog hogs[2];
    const int values[2] = { 0, nice };
    measure(hogs, 2, values, seconds);
    double sum = hogs[0].cpu_ms + hogs[1].cpu_ms;
    double is = 100 * hogs[1].cpu_ms / sum;
    double due = 100 / (1 + pow(NICE_STEP, nice));
    bool ok = fabs(is - due) <= NICE_WITHIN;
    printf("  nice %2d has %5.2f %%, due are %5.2f %%: %s\n", nice, is, due,
           ok ? "ok" : "WRONG");
    return ok;
}

bool test_nice(int seconds)
{
    bool ok = true;
    printf("beside one of nice 0, on one CPU\n");
    bind_to_cpu(0);
    for (int nice = 1; nice <= 19; nice += 6)
        ok &= test_nice_pair(nice, seconds);
    bind_to_cpu(-1);
    printf("\n");
    return ok;
}
