// The sample sources: each that the kernel offers takes samples, now; and the
// kernel's books: its accounts and errors.
#include "selftest.h"

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RATE_HZ 1000
#define TRY_NS 100000000ll
#define EXPECTED_PART 4 // of the ticks that were due, one in 4 must come
#define TRIES 2

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

// Runs this CPU for a while, so that events and ticks hit code.
static void be_busy(void)
{
    for (int64_t end = now_ns() + TRY_NS; now_ns() < end;)
        ;
}

// Samples the whole system for a moment. -1 and errno: it cannot be begun.
static int sample(const char *source, struct sprofile_info *info)
{
    struct sprofile_options options = { .rate_hz = RATE_HZ };
    struct profile_session s = { 0 };

    strncpy(options.source, source, sizeof(options.source) - 1);
    if (profile_begin(&s, (uint32_t)getpid(), &options) < 0)
        return -1;
    be_busy();
    int err = profile_info(&s, info);
    profile_end(&s);
    return err;
}

// A virtual machine may be kept from running for all of 0.1 s: a source that
// fails is tried once more, and the row says so.
static void try_source(const char *row, const char *name)
{
    char before[64] = "";

    for (int try = 1;; try++) {
        struct sprofile_info info = { 0 };
        if (sample(name, &info) < 0) {
            report(errno == EBUSY || errno == EPERM ? NOT_THERE : WRONG, row,
                   "%s", errno == EBUSY ? "it is in use" : kbox_problem(errno));
            return;
        }
        unsigned long long ticks =
            info.taken + info.missed + info.throttled + info.in_sampling;
        unsigned long long due = info.expected ? info.expected : EXPECTED_PART;
        if (ticks * EXPECTED_PART >= due) {
            report(OK, row, "%llu samples in 0.1 s%s%s",
                   (unsigned long long)info.taken,
                   ticks > info.taken ? ", some late" : "", before);
            return;
        }
        if (try == TRIES) {
            report(WRONG, row, "%llu of %llu ticks came%s", ticks, due, before);
            return;
        }
        snprintf(before, sizeof(before), "; at the first try %llu of %llu",
                 ticks, due);
    }
}

void check_sources(void)
{
    size_t count;
    struct sysinfo_sampler *sources =
        sysinfo_read_sampler("system.profile.sources", &count);

    for (size_t i = 0; sources && i < count; i++) {
        const struct sysinfo_sampler *s = &sources[i];
        char row[32] = "source ";
        strcat(row, s->name);
        if (!s->usable)
            report(verdict_of_reason(s->why), row, "%s", s->why);
        else if (s->rank > 0) // the others are events, not clocks
            try_source(row, s->name);
    }
    free(sources);
}

// ---- books

void check_books(void)
{
    size_t count;
    struct sysinfo_audit *audit = sysinfo_read_audit("system.audit", &count);
    long long off = 0;

    if (!audit) {
        report(WRONG, "accounts", "they cannot be read: %s", strerror(errno));
        return;
    }
    for (size_t i = 0; i < count; i++)
        off += llabs(audit[i].difference);
    if (off > 0)
        report(WRONG, "accounts", "cycles are missing: %lld", off);
    else
        report(OK, "accounts", "every cycle of every CPU is in one");
    free(audit);
}

// Counters of system.errors that mean that a device fails, not that a host or
// a line is slow.
static bool is_failure(const char *name)
{
    static const char *const failures[] = {
        "unexpected NMIs",
        "unexpected exceptions",
        "unexpected interrupts",
        "timers, replaced",
    };

    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        if (strcmp(name, failures[i]) == 0)
            return true;
    }
    return false;
}

void check_errors(void)
{
    size_t count;
    struct sysinfo_error *errors = sysinfo_read_error("system.errors", &count);
    unsigned failures = 0;

    for (size_t i = 0; errors && i < count; i++) {
        const struct sysinfo_error *e = &errors[i];
        if (e->count == 0 || !is_failure(e->name))
            continue;
        failures++;
        report(WRONG, "errors", "%s: %llu", e->name,
               (unsigned long long)e->count);
    }
    if (failures == 0)
        report(OK, "errors", "no device has failed since the start");
    free(errors);
}
