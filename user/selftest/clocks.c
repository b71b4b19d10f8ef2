// The clocks and timers: what the kernel found, and the counters and the RTC
// against each other, now.
#include "selftest.h"

#include "user/libstrobe/clock_rates.h"
#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIME_READS 100000
#define RATES_MS 1000

// ---- the kernel's time

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

void check_time(void)
{
    int64_t start = now_ns(), last = start, behind = 0;

    for (int i = 0; i < TIME_READS; i++) {
        if (i % (TIME_READS / 16) == 0)
            run_on(i / (TIME_READS / 16) % cpu_count());
        int64_t now = now_ns();
        if (last - now > behind)
            behind = last - now;
        last = now;
    }
    run_anywhere();
    if (behind > 0)
        report(WRONG, "time", "it went back by %lld ns", (long long)behind);
    else if (last == start)
        report(WRONG, "time", "it stands still");
    else
        report(OK, "time", "never back in %d readings", TIME_READS);
}

// ---- clocks against each other

static const struct clock_rate *find(const struct clock_rate *rates, int count,
                                     const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(rates[i].name, name) == 0)
            return &rates[i];
    }
    return NULL;
}

static void report_rate(const char *row, const struct clock_rate *rate)
{
    report(rate->disputed ? WRONG : OK, row, "%+.0f ppm (+- %.0f) by the TSC%s",
           rate->ppm, rate->uncertain_ppm,
           rate->disputed ? ": no other clock agrees" : "");
}

static void check_source(const struct sysinfo_clock *c,
                         const struct clock_rate *rates, int count)
{
    const struct clock_rate *rate = find(rates, count, c->name);
    char row[32] = "clock ";

    strcat(row, c->name);
    if (!c->usable)
        report(verdict_of_reason(c->why), row, "%s", c->why);
    else if (!rate)
        report(OK, row, "it counted at the start, runs when used; %s", c->why);
    else if (strcmp(c->name, "tsc") == 0)
        report(rate->disputed ? WRONG : OK, row, "%llu Hz; %s%s",
               (unsigned long long)c->frequency, c->why,
               rate->disputed ? ": no other clock agrees" : "");
    else
        report_rate(row, rate);
}

void check_clocks(void)
{
    struct clock_rate rates[CLOCK_RATES_MAX];
    int measured = clock_rates(rates, RATES_MS, true);
    size_t count;
    struct sysinfo_clock *clocks = sysinfo_read_clock("system.clock", &count);

    if (!clocks || measured < 0) {
        report(WRONG, "clocks", "they cannot be read: %s", strerror(errno));
        measured = 0;
        count = 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(clocks[i].use, "time source") == 0)
            check_source(&clocks[i], rates, measured);
    }
    const struct clock_rate *rtc = find(rates, measured, "rtc");
    if (rtc)
        report_rate("RTC", rtc);
    else
        report(NOT_THERE, "RTC",
               "its second does not change, or only root may "
               "read it");
    free(clocks);
}

// ---- timers

// Whether `t` is one more of a device that the machine lacks: hpet1, hpet2, ...
static bool repeats(const struct sysinfo_clock *t,
                    const struct sysinfo_clock *before)
{
    size_t letters = strcspn(t->name, "0123456789");

    return !t->usable && !before->usable && t->name[letters] != '\0' &&
           strncmp(t->name, before->name, letters) == 0 &&
           strcmp(t->why, before->why) == 0;
}

void check_timers(void)
{
    size_t count;
    struct sysinfo_clock *timers = sysinfo_read_clock("system.clock", &count);

    for (size_t i = 0; timers && i < count; i++) {
        const struct sysinfo_clock *t = &timers[i];
        char row[32] = "timer ";
        if (strcmp(t->use, "timer") != 0 || (i > 0 && repeats(t, t - 1)))
            continue;
        strcat(row, t->name);
        report(t->usable ? OK : verdict_of_reason(t->why), row, "%s", t->why);
    }
    free(timers);
}
