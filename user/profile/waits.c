// What the profiled task waits for when it does not run, checked once a second.
// (Samples show running code only.)
#include "profile.h"

#include "user/libstrobe/sysinfo.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void count(struct waits *w, const char *on)
{
    uint32_t i = 0;

    while (i < w->count && strcmp(w->list[i].on, on) != 0)
        i++;
    if (i == WAITS_MAX)
        return; // not listed
    if (i == w->count) {
        snprintf(w->list[i].on, sizeof(w->list[i].on), "%s", on);
        w->count++;
    }
    w->list[i].checks++;
}

void waits_begin(struct waits *w)
{
    w->next_ms = now_ms() + WAITS_CHECK_MS;
}

void waits_check(struct waits *w, uint32_t task)
{
    char path[SYSINFO_PATH_MAX];
    uint64_t now = now_ms();
    size_t threads = 0;
    bool waits = true;

    if (now < w->next_ms)
        return;
    w->next_ms = now + WAITS_CHECK_MS;
    snprintf(path, sizeof(path), "system.tasks.%" PRIu32 ".threads", task);
    struct sysinfo_thread *t = sysinfo_read_thread(path, &threads);
    if (threads == 0) { // the task has ended
        free(t);
        return;
    }
    for (size_t i = 0; i < threads; i++)
        waits &= t[i].wait_on[0] != '\0';
    w->checks++;
    w->waited += waits;
    if (waits)
        count(w, t[0].wait_on);
    free(t);
}

void waits_print(const struct waits *w)
{
    if (w->waited * 10 < w->checks || w->checks == 0)
        return; // it could run in over nine tenths of the checks
    printf("Waits:   not running in %" PRIu32 " of %" PRIu32
           " checks (one a second); it waited on",
           w->waited, w->checks);
    for (uint32_t i = 0; i < w->count; i++)
        printf("%s %s (%" PRIu32 ")", i > 0 ? "," : "", w->list[i].on,
               w->list[i].checks);
    putchar('\n');
}
