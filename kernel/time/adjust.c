// Clock adjustment in slices of at most a second. The correction due in a slice
// becomes a rate, and at its end the correction made is subtracted from what is
// left. So a slice that ends late is no error: the next one is shorter, or
// corrects back a little.
//
// `adjust_lock` guards all of it; changes of the timehands nest inside.
#include "kernel/time/adjust.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/sync/spinlock.h"
#include "kernel/time/callout.h"
#include "kernel/time/timehands.h"
#include "kernel/time/wallclock.h"
#include "lib/math64.h"

#define USER_HZ 100
#define TICK_NOMINAL (1000000 / USER_HZ)
#define TICK_MIN (900000 / USER_HZ)
#define TICK_MAX (1100000 / USER_HZ)

#define SLEW_MAX_NS 500000 // in a second: adjtime's 500 ppm
#define NEGLIGIBLE_NS 1000 // adjtime's unit is the microsecond
#define OFFSET_MAX_NS 500000000
#define RATE_MAX_NS (NSEC_PER_SEC / 8 - 1) // in a second: timehands_set_rate
#define FREQ_MAX (500ll << 16)
#define ERROR_MAX_US 16000000 // then the clock counts as unsynchronised
#define CONSTANT_MAX 10
// The gains of the phase-locked loop: 2^-(2 + constant) of the offset is
// corrected in a second, and 2^-2(4 + constant) of it, times the seconds since
// the last update, is added to the frequency.
#define LOOP_SHIFT 2
#define LOOP_SHIFT_FREQ 4

#define STA_PLL 0x0001
#define STA_UNSYNC 0x0040
#define STA_FREQHOLD 0x0080
#define STA_NANO 0x2000
#define STA_WRITABLE (STA_PLL | STA_UNSYNC | STA_FREQHOLD)

static struct spinlock adjust_lock = SPINLOCK_INIT("clock adjustment");

static struct {
    s64 tick, freq;
    s64 slew;   // ns left to correct, by adjtime
    s64 offset; // ns left to correct, by the loop
    s64 constant, max_error, est_error;
    s64 error_since; // raw second in which max_error was set
    s64 updated;     // raw second of the loop's last update
    s32 status, tai;
    // The current slice: corrections in ns per second, and its start.
    s64 slew_rate, offset_rate;
    struct bintime began; // raw time
} state = { .tick = TICK_NOMINAL,
            .status = STA_UNSYNC,
            .constant = LOOP_SHIFT,
            .max_error = ERROR_MAX_US,
            .est_error = ERROR_MAX_US };

static void slice_ended(struct callout *c);
static struct callout slice_end;

static s64 clamp(s64 v, s64 limit)
{
    assert_checked(limit >= 0);
    return v > limit ? limit : v < -limit ? -limit : v;
}

static s64 raw_second(void)
{
    return (s64)(clock_raw_ns() / NSEC_PER_SEC);
}

// Converts ns per second to the timehands' unit of rate.
static s64 rate_of_ns(s64 ns_per_sec)
{
    const s64 unit = 1ll << TIME_RATE_SHIFT;
    s64 whole = unit / (s64)NSEC_PER_SEC, rest = unit % (s64)NSEC_PER_SEC;
    return ns_per_sec * whole + ns_per_sec * rest / (s64)NSEC_PER_SEC;
}

static s64 total_rate(void)
{
    spin_assert_held(&adjust_lock);
    s64 by_tick =
        (state.tick - TICK_NOMINAL) * ((1ll << TIME_RATE_SHIFT) / TICK_NOMINAL);
    s64 by_freq = state.freq * (1ll << (TIME_RATE_SHIFT - 16)) / 1000000;
    return by_tick + by_freq + rate_of_ns(state.slew_rate + state.offset_rate);
}

// The correction in ns that `ns_per_sec` makes in `elapsed`.
static s64 correction_ns(s64 ns_per_sec, struct bintime elapsed)
{
    u64 rate = (u64)(ns_per_sec < 0 ? -ns_per_sec : ns_per_sec);
    s64 ns =
        (s64)((u64)elapsed.sec * rate + multiply_shift(elapsed.frac, rate, 64));
    return ns_per_sec < 0 ? -ns : ns;
}

static void subtract_correction(s64 *left, s64 ns_per_sec,
                                struct bintime elapsed)
{
    if (!ns_per_sec)
        return;
    *left -= correction_ns(ns_per_sec, elapsed);
    if (*left<NEGLIGIBLE_NS && * left> - NEGLIGIBLE_NS)
        *left = 0;
}

static struct bintime since_slice_began(void)
{
    spin_assert_held(&adjust_lock);
    struct bintime now = bintime_from_ns((s64)clock_raw_ns());
    if (bintime_compare(now, state.began) < 0) // clock_raw_ns rounds down
        return (struct bintime){ 0, 0 };
    return bintime_sub(now, state.began);
}

// Limits the loop's rate so that with tick, frequency and slew it stays within
// RATE_MAX_NS.
static s64 within_rate_max(s64 offset_rate)
{
    spin_assert_held(&adjust_lock);
    s64 others =
        (state.tick - TICK_NOMINAL) * ((s64)NSEC_PER_SEC / TICK_NOMINAL) +
        state.freq * 1000 / 65536 + state.slew_rate;
    s64 most = RATE_MAX_NS;
    assert_checked(others < most && others > -most);
    return MIN(MAX(offset_rate, -most - others), most - others);
}

// adjtime's correction runs at full speed, the loop's in proportion to the
// offset that is left.
static void choose_rates(s64 slew, s64 offset)
{
    spin_assert_held(&adjust_lock);
    assert(state.constant >= 0 && state.constant <= CONSTANT_MAX);
    s64 part = 1ll << (LOOP_SHIFT + state.constant);
    state.slew_rate = slew > 0 ? SLEW_MAX_NS : slew < 0 ? -SLEW_MAX_NS : 0;
    state.offset_rate = offset / part;
    if (!state.offset_rate)
        state.offset_rate = offset; // the rest in one second
    state.offset_rate = within_rate_max(state.offset_rate);
}

// In ns: one second, or less if adjtime's correction is complete before.
static u64 slice_length(void)
{
    u64 left = (u64)(state.slew < 0 ? -state.slew : state.slew);
    if (!state.slew_rate || left > SLEW_MAX_NS)
        return NSEC_PER_SEC;
    return left * (NSEC_PER_SEC / SLEW_MAX_NS);
}

// Ends the slice and begins the next one with new rates. The moment of the
// change is known only afterwards: the rates are chosen by an estimate of it,
// and what is left is computed from the exact one.
static void next_slice(void)
{
    spin_assert_held(&adjust_lock);
    assert(slice_end.fn); // set by clock_adjust
    s64 slew = state.slew, offset = state.offset;
    s64 slew_rate = state.slew_rate, offset_rate = state.offset_rate;
    struct bintime uptime, raw, elapsed = since_slice_began();
    subtract_correction(&slew, slew_rate, elapsed);
    subtract_correction(&offset, offset_rate, elapsed);
    choose_rates(slew, offset);
    timehands_set_rate(total_rate(), &uptime, &raw);
    elapsed = bintime_sub(raw, state.began);
    subtract_correction(&state.slew, slew_rate, elapsed);
    subtract_correction(&state.offset, offset_rate, elapsed);
    state.began = raw;
    if (state.slew_rate || state.offset_rate)
        callout_set(&slice_end, clock_now_ns() + slice_length());
    else
        callout_stop(&slice_end);
}

static void slice_ended(struct callout *c UNUSED)
{
    u32 flags = spin_lock_irq(&adjust_lock);
    next_slice();
    spin_unlock_irq(&adjust_lock, flags);
}

// --- requests ---------------------------------------------------------------

// The maximum error: since it was set it grows by the largest drift of a
// crystal.
static s64 max_error_now(void)
{
    spin_assert_held(&adjust_lock);
    s64 grown = (raw_second() - state.error_since) * (FREQ_MAX >> 16);
    return MIN(state.max_error + grown, (s64)ERROR_MAX_US);
}

// Replaces the loop's offset. The correction made for the old one in this slice
// is not subtracted from the new one.
static void set_offset(s64 ns)
{
    spin_assert_held(&adjust_lock);
    assert(ns >= -OFFSET_MAX_NS && ns <= OFFSET_MAX_NS);
    state.offset = ns;
    state.offset_rate = 0;
}

static void update_loop(s64 offset_ns)
{
    spin_assert_held(&adjust_lock);
    if (!(state.status & STA_PLL))
        return;
    s64 now = raw_second(), seconds = now - state.updated;
    set_offset(clamp(offset_ns, OFFSET_MAX_NS));
    seconds = MIN(seconds, 1ll << (LOOP_SHIFT + 1 + state.constant));
    if (!state.updated || state.status & STA_FREQHOLD)
        seconds = 0;
    state.updated = now;
    // In ns per second; a ppm is 1000 of them, and 2^16 in the unit of freq.
    s64 gain = state.offset * seconds * 65536 / 1000;
    s64 freq = gain / (1ll << (2 * (LOOP_SHIFT_FREQ + state.constant)));
    state.freq = clamp(state.freq + freq, FREQ_MAX);
}

static void set_status(s32 status)
{
    spin_assert_held(&adjust_lock);
    if (state.status & ~status & STA_PLL)
        set_offset(0); // the loop is switched off
    if (status & ~state.status & STA_PLL)
        state.updated = 0; // the first offset does not change freq
    state.status = (state.status & ~STA_WRITABLE) | (status & STA_WRITABLE);
}

static void apply(const struct timex *t)
{
    spin_assert_held(&adjust_lock);
    assert(!(t->modes & ADJUST_TICK) ||
           (t->tick >= TICK_MIN && t->tick <= TICK_MAX));
    u32 modes = t->modes;
    bool nano = state.status & STA_NANO;
    if (modes & ADJUST_STATUS)
        set_status(t->status);
    if (modes & ADJUST_NANO)
        nano = true;
    if (modes & ADJUST_MICRO)
        nano = false;
    state.status = nano ? state.status | STA_NANO : state.status & ~STA_NANO;
    if (modes & ADJUST_FREQUENCY)
        state.freq = clamp(t->freq, FREQ_MAX);
    if (modes & ADJUST_MAXERROR) {
        state.max_error = t->maxerror;
        state.error_since = raw_second();
    }
    if (modes & ADJUST_ESTERROR)
        state.est_error = t->esterror;
    if (modes & ADJUST_TIMECONST)
        state.constant =
            MIN(MAX(t->constant, 0ll) + (nano ? 0 : 4), (s64)CONSTANT_MAX);
    if (modes & ADJUST_TAI && t->constant >= 0 && t->constant <= 100000)
        state.tai = (s32)t->constant;
    if (modes & ADJUST_OFFSET) {
        s64 limit = OFFSET_MAX_NS;
        s64 ns = nano ? t->offset : clamp(t->offset, limit) * 1000;
        update_loop(ns);
    }
    if (modes & ADJUST_TICK)
        state.tick = t->tick;
    if (modes)
        next_slice();
}

static int check(const struct timex *t)
{
    if (t->modes & ADJUST_SINGLESHOT)
        return t->modes & ADJUST_OFFSET ? 0 : -EINVAL;
    if (t->modes & ADJUST_TICK && (t->tick < TICK_MIN || t->tick > TICK_MAX))
        return -EINVAL;
    if (!(t->modes & ADJUST_SETOFFSET))
        return 0;
    s64 limit = t->modes & ADJUST_NANO ? NSEC_PER_SEC : 1000000;
    return t->usec < 0 || t->usec >= limit ? -EINVAL : 0;
}

// adjtime(3): sets the correction, returns what was left of the old one, in us.
static s64 single_shot(const struct timex *t)
{
    spin_assert_held(&adjust_lock);
    s64 left = state.slew;
    subtract_correction(&left, state.slew_rate, since_slice_began());
    if (!(t->modes & ADJUST_SS_READ)) {
        // This slice's correction is not subtracted from the new slew.
        state.slew_rate = 0;
        state.slew = clamp(t->offset, INT64_MAX / 2000) * 1000;
        next_slice();
    }
    return left / 1000;
}

static void fill_result(struct timex *t)
{
    spin_assert_held(&adjust_lock);
    bool nano = state.status & STA_NANO;
    s64 unit = nano ? 1 : 1000;
    s64 max_error = max_error_now();
    if (max_error >= ERROR_MAX_US)
        state.status |= STA_UNSYNC;
    s64 now = clock_wall_ns(), offset = state.offset;
    subtract_correction(&offset, state.offset_rate, since_slice_began());
    t->offset = offset / unit;
    t->freq = state.freq;
    t->maxerror = max_error;
    t->esterror = state.est_error;
    t->status = state.status;
    t->constant = state.constant;
    t->precision = 1;
    t->tolerance = FREQ_MAX;
    t->sec = now / (s64)NSEC_PER_SEC;
    t->usec = now % (s64)NSEC_PER_SEC / unit;
    t->tick = state.tick;
    t->tai = state.tai;
}

// Called without adjust_lock, because it sets the RTC too.
static int step(const struct timex *t)
{
    s64 unit = t->modes & ADJUST_NANO ? 1 : 1000, ns;
    if (__builtin_mul_overflow(t->sec, (s64)NSEC_PER_SEC, &ns) ||
        __builtin_add_overflow(ns, t->usec * unit, &ns) ||
        __builtin_add_overflow(ns, clock_wall_ns(), &ns))
        return -EINVAL;
    return wallclock_set_ns(ns);
}

int clock_adjust(struct timex *t)
{
    int err = check(t);
    bool single = t->modes & ADJUST_SINGLESHOT;
    if (!err && !single && t->modes & ADJUST_SETOFFSET)
        err = step(t);
    if (err)
        return err;
    u32 flags = spin_lock_irq(&adjust_lock);
    if (!slice_end.fn)
        callout_init(&slice_end, slice_ended, CALLOUT_INTERRUPT);
    s64 left = 0;
    if (single)
        left = single_shot(t);
    else
        apply(t);
    fill_result(t);
    if (single)
        t->offset = left;
    int result = state.status & STA_UNSYNC ? TIME_ERROR : TIME_OK;
    spin_unlock_irq(&adjust_lock, flags);
    return result;
}

void clock_adjust_reset(void)
{
    u32 flags = spin_lock_irq(&adjust_lock);
    if (state.slew || state.offset) {
        state.slew = state.offset = 0;
        state.slew_rate = state.offset_rate = 0;
        next_slice();
    }
    state.status |= STA_UNSYNC;
    state.max_error = state.est_error = ERROR_MAX_US;
    spin_unlock_irq(&adjust_lock, flags);
}
