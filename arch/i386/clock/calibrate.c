// Calibration of the TSC and the LAPIC timer against the best counter of known
// frequency, at start-up on the boot CPU, with interrupts off.
//
// The moment at which the reference changes to a new value lies between the TSC
// read before the last read of the old value and the TSC read after the first
// read of the new one. Of several such moments, the one with the narrowest
// interval is kept, at both ends of a window; the two widths bound the error.
// If the host of a virtual machine disturbs a window, its intervals are wide,
// and another window is tried.
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/time/timecounter.h"

#define EDGES 8           // moments to choose from
#define READS_MAX 100000u // limit, for a reference that does not count
#define WINDOWS 3
#define WINDOW_MIN_US 2000u
#define WINDOW_MAX_US 20000u
#define ERROR_GOAL_PPM 20u

struct moment {
    u64 value; // what the counter read
    u64 tsc;   // when: the middle of the interval
    u64 width; // of the interval
};

struct window {
    struct moment reference[2], lapic[2]; // start, end
};

static struct calibration result;

static bool find_moment(const struct timecounter *r, struct moment *best)
{
    u64 before_old = rdtsc();
    u64 old = r->read() & r->mask;
    u32 edges = 0;
    best->width = ~0ull;
    for (u32 reads = 0; edges < EDGES && reads < READS_MAX; reads++) {
        u64 before = rdtsc();
        u64 value = r->read() & r->mask;
        u64 width = rdtsc() - before_old;
        if (value != old) {
            edges++;
            if (width < best->width)
                *best = (struct moment){ value, before_old + width / 2, width };
        }
        old = value;
        before_old = before;
    }
    return edges == EDGES;
}

static void read_lapic(struct moment *best)
{
    best->width = ~0ull;
    for (u32 i = 0; apic_present && i < EDGES; i++) {
        u64 before = rdtsc();
        u32 value = lapic_timer_count();
        u64 width = rdtsc() - before;
        if (width < best->width)
            *best = (struct moment){ value, before + width / 2, width };
    }
}

static u64 reference_ticks(const struct timecounter *r, const struct window *w)
{
    return (w->reference[1].value - w->reference[0].value) & r->mask;
}

static u32 window_us(const struct timecounter *r, const struct window *w)
{
    return (u32)(reference_ticks(r, w) * 1000000 / r->hz);
}

static u32 window_error_ppm(const struct window *w)
{
    u64 uncertain = (w->reference[0].width + w->reference[1].width) / 2;
    u64 elapsed = w->reference[1].tsc - w->reference[0].tsc;
    return (u32)MIN(uncertain * 1000000 / MAX(elapsed, 1ull), 1000000ull);
}

static bool measure(const struct timecounter *r, struct window *w)
{
    if (!find_moment(r, &w->reference[0]))
        return false;
    read_lapic(&w->lapic[0]);
    u32 us;
    do {
        cpu_relax();
        if (!find_moment(r, &w->reference[1]))
            return false;
        us = window_us(r, w);
    } while (us < WINDOW_MIN_US ||
             (us < WINDOW_MAX_US && window_error_ppm(w) >= ERROR_GOAL_PPM));
    read_lapic(&w->lapic[1]);
    return true;
}

static void evaluate(const struct timecounter *r, const struct window *w,
                     struct calibration *c)
{
    u64 tsc = w->reference[1].tsc - w->reference[0].tsc;
    c->tsc_hz = tsc * r->hz / reference_ticks(r, w);
    c->error_ppm = window_error_ppm(w);
    if (!apic_present)
        return;
    u64 lapic = w->lapic[0].value - w->lapic[1].value; // it counts down
    tsc = w->lapic[1].tsc - w->lapic[0].tsc;
    c->lapic_hz = (u32)(lapic * c->tsc_hz / tsc);
}

static bool calibrate_against(const struct timecounter *r,
                              struct calibration *c)
{
    c->error_ppm = ~0u;
    for (u32 i = 0; i < WINDOWS && c->error_ppm > ERROR_GOAL_PPM; i++) {
        struct window w;
        if (!measure(r, &w))
            return false;
        if (window_error_ppm(&w) < c->error_ppm)
            evaluate(r, &w, c);
    }
    return true;
}

// The best reference known to work whose rank is below `rank`.
static struct timecounter *next_reference(u32 rank)
{
    struct timecounter *next = NULL;
    FOR_EACH_TIMECOUNTER(tc)
    {
        if ((*tc)->rank < rank && !(*tc)->why_not &&
            (!next || (*tc)->rank > next->rank))
            next = *tc;
    }
    return next;
}

static bool calibrate_by(struct timecounter *r)
{
    if (r->start)
        r->start(r);
    bool done = calibrate_against(r, &result);
    if (r->stop)
        r->stop(r);
    return done;
}

const struct calibration *clock_calibrate(void)
{
    if (apic_present) {
        lapic_timer_mode(LAPIC_TIMER_MASKED);
        lapic_timer_start(~0u);
    }
    struct timecounter *r = next_reference(RANK_TSC);
    while (r && !calibrate_by(r))
        r = next_reference(r->rank);
    result.reference = r;
    if (apic_present)
        lapic_timer_start(0);
    return &result;
}

u32 clock_lapic_hz(void)
{
    return result.lapic_hz;
}
