// Shares of the CPU: equal ones, and by nice.
#include "schedtest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#define EQUAL_WITHIN 2.0 // percent of the mean
#define NICE_WITHIN 1.0  // percent of the CPU

#define USERS_WITHIN 1.0 // percent of the CPUs
#define ONE_USER 1001u
#define OTHER_USER 1002u

// Strobe's weights: a step of nice is a factor of 1.25 (docs/scheduler.md).
#define NICE_STEP 1.25

static double measure(struct hog *hogs, int count, const int *nice,
                      const unsigned *users, int seconds)
{
    hogs_start(hogs, count, nice, users);
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
    double elapsed = measure(hogs, threads, NULL, NULL, seconds);
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
    printf("  mean %.1f ms; worst %.2f %% off it, at most %.0f %%: %s\n\n",
           mean, worst, EQUAL_WITHIN, ok ? "ok" : "UNFAIR");
    free(hogs);
    return ok;
}

static bool test_nice_pair(int nice, int seconds)
{
    struct hog hogs[2];
    const int values[2] = { 0, nice };
    measure(hogs, 2, values, NULL, seconds);
    double sum = hogs[0].cpu_ms + hogs[1].cpu_ms;
    double is = 100 * hogs[1].cpu_ms / sum;
    double due = 100 / (1 + pow(NICE_STEP, nice));
    bool ok = fabs(is - due) <= NICE_WITHIN;
    printf("  nice %2d has %5.2f %%, due %5.2f %%: %s\n", nice, is, due,
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

static bool users_are_equal(void)
{
    char cmdline[4096] = "";
    sysinfo_get_data("kernel.cmdline", cmdline, sizeof(cmdline) - 1);
    return strstr(cmdline, "fair=user") != NULL;
}

bool test_users(int threads, int seconds)
{
    int count = 1 + threads, cpus = cpus_online();
    struct hog *hogs = calloc((size_t)count, sizeof(*hogs));
    unsigned *users = calloc((size_t)count, sizeof(*users));
    if (!hogs || !users)
        fail(2, "no memory");
    for (int i = 0; i < count; i++)
        users[i] = i == 0 ? ONE_USER : OTHER_USER;
    measure(hogs, count, NULL, users, seconds);
    double others = 0;
    for (int i = 1; i < count; i++)
        others += hogs[i].cpu_ms;
    double is = 100 * hogs[0].cpu_ms / (hogs[0].cpu_ms + others);
    double due = users_are_equal() ? 50 : 100.0 / count;
    due = fmin(due, 100.0 / cpus); // one thread uses one CPU
    bool ok = fabs(is - due) <= USERS_WITHIN;
    printf("two users on %d CPU%s, of 1 and %d CPU-bound threads\n", cpus,
           cpus == 1 ? "" : "s", threads);
    printf("  the first has %5.2f %%, due %5.2f %%: %s\n\n", is, due,
           ok ? "ok" : "WRONG");
    free(hogs);
    free(users);
    return ok;
}
