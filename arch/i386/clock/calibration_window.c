// One window of the calibration.
//
// The moment at which the reference changes to a new value lies between the TSC
// read before the last read of the old value and the TSC read after the first
// read of the new one. Of several such moments, the one with the narrowest
// interval is kept, at both ends of a window; the two widths bound the error.
//
// Between two reads the machine may stand still (a host that runs others,
// firmware in SMM). This does no harm, however long it takes, unless the
// reference wraps: a counter that does so within a second (the PIT alone: 55
// ms) has then lost that time, and the TSC seems faster than it is. A window of
// 20 ms in which it lost periods stood still for two thirds of its TSC cycles
// at least. So one that did so for half of them is repeated. If all are
// disturbed, the lowest of their rates has lost least, but it is not known.
#include "arch/i386/clock/calibration_window.h"

#include "arch/instructions.h"

#define EDGES 8           // moments to choose from
#define READS_MAX 100000u // limit, for a reference that does not count
#define WINDOW_TRIES 20   // for a window in which the reference cannot wrap
#define WINDOW_MIN_US 2000u
#define WINDOW_MAX_US 20000u
#define READS_OF_OTHERS 4u
#define STANDSTILL 64 // times the usual distance of two reads
#define PPM CALIBRATION_UNKNOWN_PPM

const struct down_counter *calibration_lapic;

// Adds up the times without a read; `now`: of a read.
static void add_standstill(struct window *w, u64 now)
{
    u64 gap = now - w->last;
    w->last = now;
    w->usual = MIN(w->usual, gap);
    if (gap > STANDSTILL * w->usual)
        w->standstill += gap;
}

// What is done between two reads makes the moment less certain, and so the
// window longer.
static bool find_moment(const struct timecounter *r, struct window *w,
                        struct moment *best)
{
    u64 before_old = rdtsc();
    u64 old = r->read() & r->mask;
    u32 edges = 0;
    best->width = ~0ull;
    for (u32 reads = 0; edges < EDGES && reads < READS_MAX; reads++) {
        u64 before = rdtsc();
        u64 value = r->read() & r->mask, after = rdtsc();
        if (w->may_wrap)
            add_standstill(w, after);
        if (value != old) {
            u64 width = after - before_old;
            edges++;
            if (width < best->width)
                *best = (struct moment){ value, before_old + width / 2, width };
        }
        old = value;
        before_old = before;
    }
    return edges == EDGES;
}

static u64 read_lapic(void)
{
    return calibration_lapic->count();
}

// Of several readings the shortest.
static void read_shortest(u64 (*read)(void), u32 readings, struct moment *best)
{
    best->width = ~0ull;
    for (u32 i = 0; i < readings; i++) {
        u64 before = rdtsc();
        u64 value = read();
        u64 width = rdtsc() - before;
        if (width < best->width)
            *best = (struct moment){ value, before + width / 2, width };
    }
}

static void read_lapic_at(struct window *w, u32 end)
{
    if (!calibration_lapic)
        return;
    if (!end)
        calibration_lapic->start(~0u);
    read_shortest(read_lapic, EDGES, &w->lapic[end]);
}

static u64 reference_ticks(const struct timecounter *r, const struct window *w)
{
    return (w->reference[1].value - w->reference[0].value) & r->mask;
}

static u64 reference_tsc(const struct window *w)
{
    return w->reference[1].tsc - w->reference[0].tsc;
}

static u64 window_us(const struct timecounter *r, const struct window *w)
{
    return reference_ticks(r, w) * 1000000 / r->hz;
}

static u32 window_error_ppm(const struct window *w)
{
    u64 uncertain = (w->reference[0].width + w->reference[1].width) / 2;
    u64 ppm = uncertain * PPM / MAX(reference_tsc(w), 1ull);
    return (u32)MIN(ppm, (u64)PPM);
}

static void read_others(struct timecounter *const *voters, u32 count,
                        struct window *w, u32 end)
{
    for (u32 i = 1; i < count; i++)
        read_shortest(voters[i]->read, READS_OF_OTHERS, &w->others[i][end]);
}

static bool measure_once(struct timecounter *const *voters, u32 count,
                         struct window *w)
{
    const struct timecounter *r = voters[0];
    *w = (struct window){ .last = rdtsc(),
                          .usual = ~0ull,
                          .may_wrap = r->mask < r->hz };
    if (!find_moment(r, w, &w->reference[0]))
        return false;
    read_lapic_at(w, 0);
    read_others(voters, count, w, 0);
    u64 us;
    do {
        cpu_relax();
        if (!find_moment(r, w, &w->reference[1]))
            return false;
        us = window_us(r, w);
    } while (
        us < WINDOW_MIN_US ||
        (us < WINDOW_MAX_US && window_error_ppm(w) >= CALIBRATION_GOAL_PPM));
    read_others(voters, count, w, 1);
    read_lapic_at(w, 1);
    w->error_ppm = window_error_ppm(w);
    w->tsc_hz = reference_tsc(w) * r->hz / reference_ticks(r, w);
    return true;
}

static bool may_have_wrapped(const struct window *w)
{
    return w->may_wrap && w->standstill > reference_tsc(w) / 2;
}

bool calibration_measure(struct timecounter *const *voters, u32 count,
                         struct window *w)
{
    struct window next;
    *w = (struct window){ 0 };
    for (u32 i = 0; i < WINDOW_TRIES; i++) {
        if (!measure_once(voters, count, &next))
            return false;
        if (!may_have_wrapped(&next)) {
            *w = next;
            return true;
        }
        if (!w->tsc_hz || next.tsc_hz < w->tsc_hz)
            *w = next;
    }
    w->error_ppm = CALIBRATION_UNKNOWN_PPM;
    return true;
}

struct vote calibration_vote_of(const struct window *w,
                                struct timecounter *const *voters, u32 i)
{
    const struct timecounter *tc = voters[i];
    const struct moment *m = w->others[i];
    if (!i)
        return (struct vote){ w->tsc_hz, w->error_ppm, false };
    u64 ticks = (m[1].value - m[0].value) & tc->mask;
    u64 tsc = m[1].tsc - m[0].tsc;
    if (!ticks || !tsc || tsc * tc->hz / w->tsc_hz > tc->mask / 2)
        return (struct vote){ 0 };
    // Uncertain by the two readings, and by a tick.
    u64 ppm = (m[0].width + m[1].width) * PPM / tsc + PPM / ticks;
    u32 error_ppm = (u32)MIN(ppm, (u64)PPM);
    return (struct vote){ tsc * tc->hz / ticks, error_ppm, false };
}

u32 calibration_lapic_hz(const struct window *w, u64 tsc_hz)
{
    u64 ticks = w->lapic[0].value - w->lapic[1].value; // it counts down
    u64 tsc = w->lapic[1].tsc - w->lapic[0].tsc;
    return w->lapic[1].value && tsc ? (u32)(ticks * tsc_hz / tsc) : 0;
}

void calibration_measure_lapic(struct window *w, u64 cycles)
{
    read_lapic_at(w, 0);
    while (rdtsc() - w->lapic[0].tsc < cycles)
        cpu_relax();
    read_lapic_at(w, 1);
}
