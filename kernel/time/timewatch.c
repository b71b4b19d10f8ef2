// The timecounter watchdog: does the TSC still run at the rate measured at
// start-up?
//
// A rate that is not known (the measurement at start-up was disturbed, or the
// counter has drifted since) is measured again, by the clock in use: for half a
// minute, so that the machine may stand still at both ends. It is corrected
// once. A counter that drifts after that has no constant rate.
//
// Every few seconds it is compared with the best other counter, the reference.
// The reference may have wrapped several times since the last comparison, so
// its distance from the expected value is taken modulo its width. A reading
// takes time, and a host may stop this CPU during it: the length of the reading
// is the uncertainty of the comparison.
#include "arch/cpu.h"
#include "kernel/base/log.h"
#include "kernel/time/timecounter.h"
#include "kernel/time/timehands.h"

#define TRIES 4
#define DRIFT_MAX_PPM 1000u
#define STRIKES 3
#define MEASURE_MIN_NS (25 * NSEC_PER_SEC)
#define MEASURE_MAX_NS (100 * NSEC_PER_SEC)

struct pair {
    u64 counted; // by the counter in use, at the middle of the reading
    u64 width;   // length of the reading, in its counts
    u64 reference;
};

static struct {
    struct timecounter *watched, *reference;
    struct pair last;
    u32 strikes;
} watch; // used by one thread

static struct {
    struct timecounter *tc; // NULL: none is measured
    struct pair first;
    bool done; // a rate has been corrected
} measured;    // used by the same thread

// `ref` NULL: the reference is the clock in use, in nanoseconds.
static struct pair read_pair(struct timecounter *tc, struct timecounter *ref)
{
    struct pair best = { .width = ~0ull };
    u32 flags = irq_save();
    for (u32 i = 0; i < TRIES; i++) {
        u64 before = tc->read();
        u64 reference = ref ? ref->read() : clock_raw_ns();
        u64 width = (tc->read() - before) & tc->mask;
        if (width < best.width)
            best = (struct pair){ before + width / 2, width, reference };
    }
    irq_restore(flags);
    return best;
}

// The distance of the reference from its expected value, in its counts.
static u64 distance(const struct timecounter *tc, const struct timecounter *ref,
                    u64 counted, u64 referred)
{
    u64 expected =
        bintime_to_ticks(bintime_from_ticks(counted, tc->hz), ref->hz);
    u64 ahead = (referred - expected) & ref->mask;
    return MIN(ahead, ref->mask + 1 - ahead);
}

bool timecounter_drifted(const struct timecounter *tc,
                         const struct timecounter *ref, u64 counted,
                         u64 referred, u64 uncertain)
{
    u64 allowed = counted / (1000000 / DRIFT_MAX_PPM) + uncertain;
    u64 ticks = bintime_to_ticks(bintime_from_ticks(allowed, tc->hz), ref->hz);
    return distance(tc, ref, counted, referred) > ticks + 1;
}

static struct timecounter *best_reference(const struct timecounter *tc)
{
    struct timecounter *best = NULL;
    FOR_EACH_TIMECOUNTER(ref)
    {
        // A counter that must be started runs only while it is in use.
        if (*ref != tc && !(*ref)->why_not && !(*ref)->start &&
            (!best || (*ref)->rank > best->rank))
            best = *ref;
    }
    return best;
}

static void begin(struct timecounter *tc, struct timecounter *ref)
{
    watch.watched = tc;
    watch.reference = ref;
    watch.strikes = 0;
    watch.last = read_pair(tc, ref);
}

static struct timecounter *unknown_rate(void)
{
    FOR_EACH_TIMECOUNTER(tc)
    {
        if (!(*tc)->why_not && !timecounter_rate_is_known(*tc))
            return *tc;
    }
    return NULL;
}

// Measures a rate by the clock in use, over several calls.
static void measure(struct timecounter *tc)
{
    struct pair now = read_pair(tc, NULL);
    u64 ns = now.reference - measured.first.reference;
    if (measured.tc != tc || ns > MEASURE_MAX_NS) {
        measured.tc = tc;
        measured.first = now;
        return;
    }
    u64 counted = now.counted - measured.first.counted;
    u64 uncertain = now.width + measured.first.width;
    u64 ppm = uncertain * 1000000 / MAX(counted, 1ull) + 1;
    if (ns < MEASURE_MIN_NS || ppm > STROBE_TSC_KNOWN_PPM)
        return;
    measured.tc = NULL;
    measured.done = true;
    timecounter_correct(tc, counted * 1000000 / (ns / 1000), (u32)ppm);
}

static void give_up(struct timecounter *tc, const struct timecounter *ref)
{
    log_printf("clock: the %s and the %s have drifted apart\n", tc->name,
               ref->name);
    if (measured.done)
        timecounter_demote(tc, "it has drifted from another counter");
    else
        timecounter_doubt(tc);
}

void timecounter_watch(void)
{
    struct timecounter *tc = timecounter_in_use(), *ref = best_reference(tc);
    struct timecounter *unknown = unknown_rate();
    if (unknown && unknown != tc)
        measure(unknown);
    if (!(tc->flags & TIMECOUNTER_MEASURED) || !ref)
        return;
    if (watch.watched != tc || watch.reference != ref) {
        begin(tc, ref);
        return;
    }
    struct pair now = read_pair(tc, ref);
    bool drifted = timecounter_drifted(
        tc, ref, now.counted - watch.last.counted,
        now.reference - watch.last.reference, now.width + watch.last.width);
    watch.last = now;
    watch.strikes = drifted ? watch.strikes + 1 : 0;
    if (watch.strikes < STRIKES)
        return;
    watch.watched = NULL;
    give_up(tc, ref);
}
