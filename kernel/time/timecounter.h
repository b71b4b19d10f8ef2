// Timecounters: the counters of the machine that only count, at a known rate.
//
// Each is one static struct and one TIMECOUNTER line; the usable one of highest
// rank tells the kernel the time (clock_now_ns), `clocksource=NAME` overrides.
// The ranks, and what lowers them, are in docs/time.md.
#pragma once

#include "lib/set.h"
#include "lib/types.h"

// Ranks. One that stands below another is only chosen where the other is not
// usable, or by name.
enum {
    RANK_PIT = 100,
    RANK_PM_TIMER = 200,
    RANK_HPET = 300,
    RANK_TSC = 400, // measured by the others, so it is probed last
};

struct timecounter {
    const char *name; // as on the command line: "hpet"
    u32 rank;
    u32 flags;
    u64 hz;   // counts per second; constant, or set by probe
    u64 mask; // the bits that count, 2^n - 1; constant, or set by probe

    // The counter, counting up; bits outside `mask` may be anything. Any CPU,
    // several at once, any context, NMI included: so it may take no lock. It is
    // read at least every (mask + 1) / hz / 2 seconds while it is in use.
    u64 (*read)(void);

    // Finds it, starts it, sets hz and mask; NULL: it counts, else why it is
    // not usable (a constant text, for the log and sysinfo). Called once, at
    // start-up, on the boot CPU, interrupts off, after the ACPI tables are
    // read.
    const char *(*probe)(struct timecounter *tc);

    // It became the kernel's clock, or ceased to be (either may be NULL): for
    // a counter that needs help only while it is used. Interrupts off.
    void (*start)(struct timecounter *tc);
    void (*stop)(struct timecounter *tc);

    const char *note;    // how it was found, for sysinfo; may be NULL
    const char *why_not; // the registry's: the answer of probe, or of demotion
};

// It is the TSC, and LFENCE keeps RDTSC in order: the clock is read without a
// call of `read`, by programs too.
#define TIMECOUNTER_USER 1u
// Its rate was measured, not specified: timecounter_watch sees whether it
// lasts.
#define TIMECOUNTER_MEASURED 2u

#define TIMECOUNTER(tc) LINKER_SET_ADD(timecounters, tc)
#define FOR_EACH_TIMECOUNTER(tc) \
    LINKER_SET_FOR_EACH(struct timecounter, tc, timecounters)

// Probes all and begins to tell the time. Boot CPU, once.
void timecounters_init(void);
// From here on it is certain that the counter is read in time. Once, as soon as
// callouts work, with interrupts on.
void timecounters_start(void);

// The one in use; NULL before timecounters_init.
struct timecounter *timecounter_in_use(void);
// It has turned out to be no good: it is not used any more, the next best one
// takes over, the log says so. `why` is kept. Any context but NMI.
void timecounter_demote(struct timecounter *tc, const char *why);
// Makes it the kernel's clock. -EINVAL: it is not usable. Any context but NMI.
int timecounter_use(struct timecounter *tc);

// Compares a measured counter in use with the best other one; demotes it when
// they have drifted apart three times in a row. Every few seconds, by one
// thread.
void timecounter_watch(void);
// Whether the one has drifted from the other while they counted so much, when
// the readings are uncertain by so many counts of the first. The second may
// have wrapped any number of times.
bool timecounter_drifted(const struct timecounter *tc,
                         const struct timecounter *reference, u64 counted,
                         u64 referred, u64 uncertain);
