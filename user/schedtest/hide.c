// A program that evades tick-based accounting: it runs between the ticks of the
// clock and sleeps across them. A kernel that counts ticks does not see it. A
// statistics clock of its own phase does, and so does exact accounting at every
// switch (the ledger).
#define _GNU_SOURCE
#include "schedtest.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "user/libstrobe/strobe.h"

#define TICK_NS (10 * MS)
#define MARGIN_NS (1 * MS)
#define UNSEEN_BELOW 5.0 // maximum share in percent by the tick
#define SEEN_WITHIN 5.0 // maximum difference in percent of statclock and ledger

static void sleep_until(uint64_t ns)
{
    struct timespec t = { (time_t)(ns / SECOND), (long)(ns % SECOND) };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
}

static _Noreturn void hide(void)
{
    bind_to_cpu(0);
    for (;;) {
        uint64_t now = clock_ns(CLOCK_MONOTONIC);
        uint64_t tick = (now / TICK_NS + 1) * TICK_NS;
        sleep_until(tick + MARGIN_NS);
        while (clock_ns(CLOCK_MONOTONIC) < tick + TICK_NS - MARGIN_NS)
            ;
    }
}

struct seen {
    uint64_t cpu_ns;               // by the ledger
    unsigned tick, stat;           // samples of the program, by each clock
    unsigned all_ticks, all_stats; // samples of CPU 0, by each clock
    char clock[80];                // description of statclock
};

static void parse(const char *line, pid_t pid, struct seen *s)
{
    unsigned n[4], tid, tick, stat;
    char clock[5];
    if (strncmp(line, "stat ", 5) == 0)
        snprintf(s->clock, sizeof(s->clock), "%.*s",
                 (int)strcspn(line + 5, "\n"), line + 5);
    if (sscanf(line, "cpu 0 %4s user %u system %u irq %u idle %u", clock, &n[0],
               &n[1], &n[2], &n[3]) == 5)
        *(strcmp(clock, "tick") == 0 ? &s->all_ticks : &s->all_stats) =
            n[0] + n[1] + n[2] + n[3];
    else if (sscanf(line, "thread %u tick %u stat %u", &tid, &tick, &stat) ==
                 3 &&
             tid == (unsigned)pid)
        s->tick = tick, s->stat = stat;
}

static void look(FILE *f, pid_t pid, struct seen *s)
{
    clockid_t clock;
    char line[200];

    *s = (struct seen){ 0 };
    rewind(f);
    while (fgets(line, sizeof(line), f)) {
        parse(line, pid, s);
    }
    if (clock_getcpuclockid(pid, &clock) != 0)
        fail(2, "there is no clock of process %d", (int)pid);
    s->cpu_ns = clock_ns(clock);
}

static bool report(const struct seen *a, const struct seen *b, double elapsed)
{
    double books = 100 * (double)(b->cpu_ns - a->cpu_ns) / elapsed;
    double tick = 100.0 * (b->tick - a->tick) / (b->all_ticks - a->all_ticks);
    double stat = 100.0 * (b->stat - a->stat) / (b->all_stats - a->all_stats);
    printf("  statclock: %s\n", a->clock);
    printf("  by the ledger it had        %5.1f %% of the CPU\n", books);
    printf("  %4u ticks on a grid say    %5.1f %%: %s\n",
           b->all_ticks - a->all_ticks, tick,
           tick < UNSEEN_BELOW ? "it hides" : "IT DOES NOT HIDE");
    bool seen = fabs(stat - books) <= SEEN_WITHIN;
    printf("  %4u ticks at random say    %5.1f %%: %s\n\n",
           b->all_stats - a->all_stats, stat, seen ? "seen" : "NOT SEEN");
    return seen && tick < UNSEEN_BELOW;
}

bool test_hide(int seconds)
{
    FILE *f = fopen("/dev/statclock", "r");
    if (!f)
        fail(2, "there is no /dev/statclock; is this Strobe?");
    pid_t pid = fork();
    if (pid == 0)
        hide();
    if (pid < 0)
        fail(2, "cannot start a process");
    printf("a program that sleeps across the ticks, for %d s\n", seconds);
    struct seen before, after;
    sleep_ns(100 * MS);
    look(f, pid, &before);
    uint64_t from = clock_ns(CLOCK_MONOTONIC);
    sleep_ns((uint64_t)seconds * SECOND);
    double elapsed = (double)(clock_ns(CLOCK_MONOTONIC) - from);
    look(f, pid, &after);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    fclose(f);
    return report(&before, &after, elapsed);
}
