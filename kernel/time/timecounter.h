// Timecounters: free-running counters of the machine, of known rate.
//
// Each is one static struct and one TIMECOUNTER line; the usable one of highest
// rank is the kernel's clock (clock_now_ns), unless `clocksource=NAME`
// overrides. The ranks, and what lowers them, are in docs/time.md.
#pragma once

#include <strobe/core_clock.h>

#include "lib/set.h"
#include "lib/types.h"

// Ranks. A counter is chosen over one of higher rank only if that one is not
// usable, or its rate is not known, or by name.
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
    u64 hz;        // counts per second; constant, or set by probe and corrected
    u32 error_ppm; // how far `hz` may be off; 0: it is specified
    u64 mask;      // the bits that count, 2^n - 1; constant, or set by probe

    // Reads the counter, which counts up; bits outside `mask` may be anything.
    // Called on any CPU, on several at once, in any context, NMI included: it
    // may take no lock. While the counter is in use it is read at least every
    // (mask + 1) / hz / 2 seconds.
    u64 (*read)(void);

    // Finds the counter, starts it, sets hz and mask. NULL: it is usable, else
    // the reason (a constant text, for the log and sysinfo). Called once, at
    // start-up, on the boot CPU, interrupts off, after the ACPI tables are
    // read.
    const char *(*probe)(struct timecounter *tc);

    // Called when it becomes the kernel's clock, and when it ceases to be
    // (either may be NULL): for a counter that needs work only while it is
    // used. Interrupts off.
    void (*start)(struct timecounter *tc);
    void (*stop)(struct timecounter *tc);
    // Called once `hz` has been corrected (timecounter_correct). May be NULL.
    void (*corrected)(struct timecounter *tc);

    const char *note;    // how it was found, for sysinfo; may be NULL
    const char *why_not; // set by the registry: by probe, or by demotion
};

// The counter is the TSC, and LFENCE keeps RDTSC in order: the clock is read
// without a call of `read`, also by programs.
#define TIMECOUNTER_USER 1u
// Its rate was measured, not specified: timecounter_watch checks that it stays
// the same.
#define TIMECOUNTER_MEASURED 2u

// If not, every counter of known rate ranks above this one, and
// timecounter_watch measures it.
static inline bool timecounter_rate_is_known(const struct timecounter *tc)
{
    return READ_ONCE(tc->error_ppm) <= STROBE_TSC_KNOWN_PPM;
}

#define TIMECOUNTER(tc) LINKER_SET_ADD(timecounters, tc)
#define FOR_EACH_TIMECOUNTER(tc) \
    LINKER_SET_FOR_EACH(struct timecounter, tc, timecounters)

// Probes all counters and starts the kernel's clock. Boot CPU, once.
void timecounters_init(void);
// Starts the callout that reads the counter before it wraps. Once, as soon as
// callouts work, with interrupts on.
void timecounters_start(void);

// The counter in use; NULL before timecounters_init.
struct timecounter *timecounter_in_use(void);
// Marks a counter as unusable. If it is in use, the next best one takes over
// and the log reports it. The pointer `why` is kept. Any context but NMI.
void timecounter_demote(struct timecounter *tc, const char *why);
// Makes `tc` the kernel's clock. -EINVAL: it is not usable. Any context but
// NMI.
int timecounter_use(struct timecounter *tc);
// `tc` does not run at `hz`: it is no longer used until timecounter_correct.
// Thread context.
void timecounter_doubt(struct timecounter *tc);
// Sets the rate of a counter that is not in use, whose rate was not known, and
// uses it if it is the best one then. Thread context.
void timecounter_correct(struct timecounter *tc, u64 hz, u32 error_ppm);

// Compares a measured counter in use with the best other one; doubts it when
// they have drifted apart three times in a row, and demotes it at the second
// time. Measures a rate that is not known by the clock in use, for half a
// minute, and corrects it. Called every few seconds, by one thread.
void timecounter_watch(void);
// True if `tc` has drifted from `reference` while they counted `counted` and
// `referred`, where the readings are uncertain by `uncertain` counts of `tc`.
// `reference` may have wrapped any number of times.
bool timecounter_drifted(const struct timecounter *tc,
                         const struct timecounter *reference, u64 counted,
                         u64 referred, u64 uncertain);
