// Calibration of the TSC and the LAPIC timer against the best counter of known
// frequency, at start-up on the boot CPU, with interrupts off.
//
// The moment at which the reference changes to a new value lies between the TSC
// read before the last read of the old value and the TSC read after the first
// read of the new one. Of several such moments, the one with the narrowest
// interval is kept, at both ends of a window; the two widths bound the error.
// If the host of a virtual machine disturbs a window, its intervals are wide,
// and another window is tried. Between two reads the machine may have stood
// still (a host that runs others, firmware in SMM): the PIT, read again after
// more than its 55 ms, has lost that time. So no window counts in which most of
// the time lies between two reads.
//
// No counter is believed alone. The other counters are read at both ends of the
// same window, and each that works gives a rate of the TSC
// (calibration_vote.h). So does CPUID, on some processors. A counter that the
// others contradict is not used. If no two agree, or if the only one says what
// cannot be, the TSC is also measured by a second of the RTC, which takes up to
// two. If no counter is left, CPUID's rate is used.
#include "arch/cpu.h"
#include "arch/i386/clock/calibration_vote.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/clock/rtc_format.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/base/log.h"
#include "kernel/time/timecounter.h"

#define EDGES 8           // moments to choose from
#define READS_MAX 100000u // limit, for a reference that does not count
#define WINDOWS 3
#define WINDOW_TRIES 20 // for a window without a standstill
#define WINDOW_MIN_US 2000u
#define WINDOW_MAX_US 20000u
#define ERROR_GOAL_PPM 20u
#define READS_OF_OTHERS 4u
#define SECOND_LIMIT (1ull << 35) // TSC cycles: 3 s at the most, if it is fast

struct moment {
    u64 value; // what the counter read
    u64 tsc;   // when: the middle of the interval
    u64 width; // of the interval
};

struct window {
    struct moment reference[2], lapic[2]; // start, end
    struct moment others[VOTERS_MAX][2];
    u64 last, standstill; // TSC at the last read; longest time between two
};

static struct calibration result;
static struct timecounter *voters[VOTERS_MAX]; // the reference is the first
static u32 voter_count;
static struct vote votes[VOTERS_MAX + 1]; // the voters', then CPUID's

// Reads the reference, and keeps the longest time without a read.
static u64 read_reference(const struct timecounter *r, struct window *w)
{
    u64 value = r->read() & r->mask, now = rdtsc();
    w->standstill = MAX(w->standstill, now - w->last);
    w->last = now;
    return value;
}

static bool find_moment(const struct timecounter *r, struct window *w,
                        struct moment *best)
{
    u64 before_old = rdtsc();
    u64 old = read_reference(r, w);
    u32 edges = 0;
    best->width = ~0ull;
    for (u32 reads = 0; edges < EDGES && reads < READS_MAX; reads++) {
        u64 before = rdtsc();
        u64 value = read_reference(r, w);
        u64 width = w->last - before_old;
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

static u64 read_lapic(void)
{
    return lapic_timer_count();
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

static void read_all(struct window *w, u32 end)
{
    if (apic_present)
        read_shortest(read_lapic, EDGES, &w->lapic[end]);
    for (u32 i = 1; i < voter_count; i++)
        read_shortest(voters[i]->read, READS_OF_OTHERS, &w->others[i][end]);
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

static bool measure_once(const struct timecounter *r, struct window *w)
{
    *w = (struct window){ .last = rdtsc() };
    if (!find_moment(r, w, &w->reference[0]))
        return false;
    read_all(w, 0);
    u32 us;
    do {
        cpu_relax();
        if (!find_moment(r, w, &w->reference[1]))
            return false;
        us = window_us(r, w);
    } while (us < WINDOW_MIN_US ||
             (us < WINDOW_MAX_US && window_error_ppm(w) >= ERROR_GOAL_PPM));
    read_all(w, 1);
    return true;
}

static bool stood_still(const struct window *w)
{
    return w->standstill > (w->reference[1].tsc - w->reference[0].tsc) / 2;
}

static bool measure(const struct timecounter *r, struct window *w)
{
    u32 tries = 0;
    do {
        if (tries++ == WINDOW_TRIES || !measure_once(r, w))
            return false;
    } while (stood_still(w));
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

// What another counter says about a window of `us`: uncertain by the two
// readings, and by a tick. Nothing, if it may have wrapped.
static void count_vote(const struct timecounter *tc, u32 us,
                       const struct moment *m, struct vote *v)
{
    u64 ticks = (m[1].value - m[0].value) & tc->mask;
    u64 tsc = m[1].tsc - m[0].tsc;
    *v = (struct vote){ 0 };
    if (!ticks || !tsc || us * tc->hz / 1000000 > tc->mask / 2)
        return;
    v->tsc_hz = tsc * tc->hz / ticks;
    u64 ppm = (m[0].width + m[1].width) * 1000000 / tsc + 1000000 / ticks;
    v->error_ppm = (u32)MIN(ppm, 1000000ull);
}

// SDM vol. 2, CPUID, leaves 15H and 16H.
static struct vote cpuid_says(void)
{
    u32 last = cpuid(0, 0).eax;
    struct cpuid ratio = { 0 }, speed = { 0 };
    if (last >= 0x15)
        ratio = cpuid(0x15, 0);
    if (last >= 0x16)
        speed = cpuid(0x16, 0);
    return vote_of_cpuid(ratio.eax, ratio.ebx, ratio.ecx, speed.eax & 0xffff);
}

static void count_votes(const struct window *w, const struct calibration *c)
{
    votes[0] = (struct vote){ c->tsc_hz, c->error_ppm, false };
    for (u32 i = 1; i < voter_count; i++)
        count_vote(voters[i], window_us(voters[0], w), w->others[i], &votes[i]);
    votes[voter_count] = cpuid_says();
}

static bool any_outvoted(void)
{
    bool any = false;
    for (u32 i = 0; i < voter_count; i++)
        any |= votes[i].outvoted;
    return any;
}

// An outvoted counter may have been read late: another window decides. The
// result is the narrowest window's, of those whose rate others confirm if there
// are such.
static bool measure_windows(enum verdict *verdict, u32 *chosen)
{
    bool confirmed = false;
    result.error_ppm = ~0u;
    for (u32 i = 0; i < WINDOWS; i++) {
        struct calibration c = { 0 };
        struct window w;
        if (!measure(voters[0], &w))
            return false;
        evaluate(voters[0], &w, &c);
        count_votes(&w, &c);
        *verdict = calibration_vote(votes, voter_count + 1, 0, chosen);
        bool now = *verdict != VOTE_OPEN && !votes[0].outvoted;
        if (now > confirmed ||
            (now == confirmed && c.error_ppm < result.error_ppm)) {
            result = c;
            confirmed = now;
        }
        if (result.error_ppm <= ERROR_GOAL_PPM && *verdict != VOTE_OPEN &&
            !any_outvoted())
            break;
    }
    return true;
}

// --- the RTC's second

static bool next_second(u64 *at)
{
    u8 first = cmos_read(RTC_SECONDS), now;
    u64 start = rdtsc();
    do {
        bool updating = cmos_read(RTC_A) & RTC_A_UPDATING;
        now = updating ? first : cmos_read(RTC_SECONDS);
        *at = rdtsc();
        if (*at - start > SECOND_LIMIT)
            return false;
    } while (now == first);
    return true;
}

// The TSC's rate; 0: the RTC does not count.
static u64 measure_second(void)
{
    static bool measured;
    static u64 hz;
    u64 start, end;
    if (measured)
        return hz;
    measured = true;
    log_printf("clock: measuring by a second of the RTC, for %s\n",
               voter_count > 1 ? "the counters disagree"
                               : "the only counter is not plausible");
    if (next_second(&start) && next_second(&end))
        hz = end - start;
    return hz;
}

// --- the choice

static void believe_rtc(u64 hz)
{
    log_printf("clock: the RTC's second agrees with no counter\n");
    result.lapic_hz = (u32)(result.lapic_hz * hz / MAX(result.tsc_hz, 1ull));
    result.tsc_hz = hz;
    result.error_ppm = 1000000 / 50; // the length of an update
    result.by_rtc = true;
    for (u32 i = 0; i < voter_count; i++)
        votes[i].outvoted = true;
}

// CPUID is no counter: the first that it agrees with; voter_count: none.
static u32 first_believed(void)
{
    u32 i = 0;
    while (i < voter_count && (votes[i].outvoted || !votes[i].tsc_hz))
        i++;
    return i;
}

// False: another reference is better.
static bool judge(enum verdict verdict, u32 chosen)
{
    u64 second = verdict == VOTE_OPEN ? measure_second() : 0;
    if (second)
        verdict = calibration_vote(votes, voter_count + 1, second, &chosen);
    if (verdict != VOTE_OPEN && chosen == voter_count)
        chosen = first_believed();
    if (verdict == VOTE_OPEN && second)
        believe_rtc(second);
    else if (verdict == VOTE_OPEN)
        log_printf("warning: clock: nothing confirms the rate by the %s\n",
                   voters[0]->name);
    if (verdict != VOTE_OPEN && chosen != 0)
        votes[0].outvoted = true;
    for (u32 i = 0; i < voter_count; i++) {
        if (votes[i].outvoted)
            timecounter_demote(voters[i], "its rate contradicts other clocks");
    }
    if (votes[voter_count].outvoted)
        log_printf("clock: the TSC's rate by CPUID, %llu Hz, contradicts other "
                   "clocks\n",
                   votes[voter_count].tsc_hz);
    return !votes[0].outvoted || result.by_rtc;
}

// The best counter of known rate that works, below `rank`.
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

static void find_voters(struct timecounter *first)
{
    voter_count = 0;
    for (struct timecounter *tc = first; tc && voter_count < VOTERS_MAX;
         tc = next_reference(tc->rank))
        voters[voter_count++] = tc;
}

static bool calibrate_by(struct timecounter *r)
{
    enum verdict verdict;
    u32 chosen = 0;
    find_voters(r);
    if (r->start)
        r->start(r);
    bool measured = measure_windows(&verdict, &chosen);
    if (r->stop)
        r->stop(r);
    return measured && judge(verdict, chosen);
}

// Without a counter, CPUID's rate; the LAPIC timer is measured by the TSC.
static void believe_cpuid(void)
{
    struct vote v = cpuid_says();
    struct moment lapic[2] = { 0 };
    if (!v.tsc_hz)
        return;
    result.tsc_hz = v.tsc_hz;
    result.error_ppm = v.error_ppm;
    result.by_cpuid = true;
    if (!apic_present)
        return;
    read_shortest(read_lapic, EDGES, &lapic[0]);
    while (rdtsc() - lapic[0].tsc < v.tsc_hz / 1000000 * WINDOW_MAX_US)
        cpu_relax();
    read_shortest(read_lapic, EDGES, &lapic[1]);
    result.lapic_hz = (u32)((lapic[0].value - lapic[1].value) * v.tsc_hz /
                            (lapic[1].tsc - lapic[0].tsc));
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
    result.reference = result.by_rtc ? NULL : r;
    if (!r)
        believe_cpuid();
    if (apic_present)
        lapic_timer_start(0);
    return &result;
}

u32 clock_lapic_hz(void)
{
    return result.lapic_hz;
}
