// Calibration of the TSC and the LAPIC timer against the best counter of known
// frequency (calibration_window.c), at start-up on the boot CPU, with
// interrupts off.
//
// No counter is believed alone. The other counters are read at both ends of the
// same window, and each that works gives a rate of the TSC
// (calibration_vote.h). So do CPUID and a hypervisor, on some machines. A
// counter that the others contradict is not used. If no two agree, or if the
// only one says what cannot be, the TSC is also measured by a second of the
// RTC, which takes up to two. Without a counter a stated rate is used, then the
// RTC's; without that, a rate is assumed: time is only an order then.
#include "arch/cpu.h"
#include "arch/i386/clock/calibration_window.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/clock/rtc_format.h"
#include "arch/i386/clock/stated_rates.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/msr.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/base/log.h"
#include "kernel/time/timecounter.h"

#define WINDOWS 3
#define SECOND_LIMIT (1ull << 35) // TSC cycles: 3 s at the most, if it is fast
#define RTC_ERROR_PPM 20000u // the length of an update, and of two readings
#define SECOND_PARTS 100     // a reading must be as short as this
#define SECONDS_MAX 4
#define HZ_ASSUMED 1000000000ull
#define LAPIC_WINDOWS_PER_SECOND 50
#define LAPIC_TRIES 3

static struct calibration result;
static struct timecounter *voters[VOTERS_MAX]; // the reference is the first
static u32 voter_count;
static u32 vote_count;
static struct vote votes[VOTERS_MAX + STATED_RATES]; // voters', then stated

static const struct core_clock_io machine_io = { .read = read_msr_safely,
                                                 .cpuid = cpuid_words };

static void count_votes(const struct window *w)
{
    for (u32 i = 0; i < voter_count; i++)
        votes[i] = calibration_vote_of(w, voters, i);
    stated_rates(&machine_io, &votes[voter_count]);
    vote_count = voter_count + STATED_RATES;
}

static bool any_outvoted(void)
{
    bool any = false;
    for (u32 i = 0; i < voter_count; i++)
        any |= votes[i].outvoted;
    return any;
}

static bool is_unknown(const struct calibration *c)
{
    return c->error_ppm >= CALIBRATION_UNKNOWN_PPM;
}

static void evaluate(const struct window *w, struct calibration *c)
{
    *c = (struct calibration){ .tsc_hz = w->tsc_hz, .error_ppm = w->error_ppm };
    if (apic_present)
        c->lapic_hz = calibration_lapic_hz(w, c->tsc_hz);
}

// An outvoted counter may have been read late: another window decides. The
// result is the narrowest window's, of those whose rate others confirm if there
// are such.
static bool measure_windows(enum verdict *verdict, u32 *chosen)
{
    bool confirmed = false;
    result.error_ppm = ~0u;
    for (u32 i = 0; i < WINDOWS; i++) {
        struct calibration c;
        struct window w;
        if (!calibration_measure(voters, voter_count, &w))
            return false;
        evaluate(&w, &c);
        if (is_unknown(&c)) {
            result = c;
            break;
        }
        count_votes(&w);
        *verdict = calibration_vote(votes, vote_count, 0, chosen);
        bool now = *verdict != VOTE_OPEN && !votes[0].outvoted;
        if (now > confirmed ||
            (now == confirmed && c.error_ppm < result.error_ppm)) {
            result = c;
            confirmed = now;
        }
        if (result.error_ppm <= CALIBRATION_GOAL_PPM && *verdict != VOTE_OPEN &&
            !any_outvoted())
            break;
    }
    return true;
}

// --- the RTC's second

// `at`: between the last read of the old second and the first of the new one.
// The update between them may last long: QEMU ends it when its main thread
// runs.
static bool next_second(struct moment *at)
{
    u64 start = rdtsc(), before = start, after = start;
    u8 first = cmos_read(RTC_SECONDS), now;
    do {
        u64 reading = rdtsc();
        bool updating = cmos_read(RTC_A) & RTC_A_UPDATING;
        now = updating ? first : cmos_read(RTC_SECONDS);
        after = rdtsc();
        if (!updating && now == first)
            before = reading;
        if (after - start > SECOND_LIMIT)
            return false;
    } while (now == first);
    *at = (struct moment){ .tsc = after, .width = after - before };
    return true;
}

// The TSC's rate; 0: the RTC does not count, or the machine stood still when
// each second changed.
static u64 measure_second(void)
{
    static bool measured;
    static u64 hz;
    struct moment start, end;
    if (measured)
        return hz;
    measured = true;
    log_printf("clock: measuring by a second of the RTC, for %s\n",
               voter_count > 1 ? "the counters disagree"
               : voter_count   ? "the only counter is not plausible"
                               : "no counter has measured it");
    bool ticks = next_second(&start);
    for (u32 i = 0; ticks && !hz && i < SECONDS_MAX; i++) {
        ticks = next_second(&end);
        u64 elapsed = end.tsc - start.tsc;
        if (ticks && (start.width + end.width) < elapsed / SECOND_PARTS)
            hz = elapsed;
        start = end;
    }
    return hz;
}

// --- the choice

static void believe_rtc(u64 hz)
{
    result.lapic_hz = (u32)(result.lapic_hz * hz / MAX(result.tsc_hz, 1ull));
    result.tsc_hz = hz;
    result.error_ppm = RTC_ERROR_PPM;
    result.by = "rtc";
    for (u32 i = 0; i < voter_count; i++)
        votes[i].outvoted = true;
}

// A stated rate is no counter: the first that it agrees with; voter_count:
// none.
static u32 first_believed(void)
{
    u32 i = 0;
    while (i < voter_count && (votes[i].outvoted || !votes[i].tsc_hz))
        i++;
    return i;
}

static void log_outvoted(void)
{
    for (u32 i = 0; i < voter_count; i++) {
        if (votes[i].outvoted)
            timecounter_demote(voters[i], "its rate contradicts other clocks");
    }
    for (u32 i = 0; i < STATED_RATES; i++) {
        const struct vote *v = &votes[voter_count + i];
        if (v->outvoted)
            log_printf("clock: the TSC's rate by %s, %llu Hz, contradicts "
                       "other clocks\n",
                       stated_by[i], v->tsc_hz);
    }
}

// False: another reference is better.
static bool judge(enum verdict verdict, u32 chosen)
{
    u64 second = verdict == VOTE_OPEN ? measure_second() : 0;
    if (second)
        verdict = calibration_vote(votes, vote_count, second, &chosen);
    if (verdict != VOTE_OPEN && chosen >= voter_count)
        chosen = first_believed();
    if (verdict == VOTE_OPEN && second) {
        log_printf("clock: the RTC's second agrees with no counter\n");
        believe_rtc(second);
    } else if (verdict == VOTE_OPEN) {
        log_printf("warning: clock: nothing confirms the rate by the %s\n",
                   voters[0]->name);
    }
    if (verdict != VOTE_OPEN && chosen != 0)
        votes[0].outvoted = true;
    log_outvoted();
    return !votes[0].outvoted || result.by;
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
    return measured && (is_unknown(&result) || judge(verdict, chosen));
}

// No counter has measured the TSC, except perhaps in disturbed windows.
static void believe_other(void)
{
    struct vote stated[STATED_RATES];
    stated_rates(&machine_io, stated);
    for (u32 i = 0; i < STATED_RATES; i++) {
        if (!stated[i].tsc_hz)
            continue;
        result = (struct calibration){ .tsc_hz = stated[i].tsc_hz,
                                       .error_ppm = stated[i].error_ppm,
                                       .by = stated_by[i],
                                       .stated = true };
        return;
    }
    voter_count = 0;
    u64 second = measure_second();
    if (second)
        believe_rtc(second);
    else if (!result.tsc_hz)
        result = (struct calibration){ .tsc_hz = HZ_ASSUMED,
                                       .error_ppm = CALIBRATION_UNKNOWN_PPM };
}

// A LAPIC timer that no window has measured.
static void measure_lapic(void)
{
    struct window w = { 0 };
    for (u32 i = 0; i < LAPIC_TRIES && !result.lapic_hz; i++) {
        calibration_measure_lapic(&w, result.tsc_hz / LAPIC_WINDOWS_PER_SECOND);
        result.lapic_hz = calibration_lapic_hz(&w, result.tsc_hz);
    }
}

const struct calibration *clock_calibrate(void)
{
    static const struct down_counter lapic = { lapic_timer_start,
                                               lapic_timer_count };
    if (apic_present) {
        lapic_timer_mode(LAPIC_TIMER_MASKED);
        calibration_lapic = &lapic;
    }
    struct timecounter *r = next_reference(RANK_TSC);
    while (r && !calibrate_by(r))
        r = next_reference(r->rank);
    if (!r)
        result = (struct calibration){ 0 };
    if (!r || is_unknown(&result))
        believe_other();
    else if (!result.by)
        result.by = r->name;
    if (apic_present) {
        measure_lapic();
        lapic_timer_start(0);
    }
    return &result;
}

u32 clock_lapic_hz(void)
{
    return result.lapic_hz;
}
