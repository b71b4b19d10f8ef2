// The interval timer as a clock that loses no period, however long it is not
// read and interrupts are off.
//
// A 16-bit counter wraps 18 times a second and does not count the wraps. But
// two counters of different periods, latched at the same instant by the
// read-back command, do: with periods of 64 * 1024 and 64 * 1023 the second one
// gains 64 ticks on the first in each of the first one's periods, so
//
//     (second - first) / 64 mod 1023
//
// is the number of periods that have passed, up to 1023: 56 seconds, without
// any interrupt. Coprime periods would last an hour, but then a single tick
// between the two latches would be taken for a period; here up to 31 ticks do
// no harm. Real chips latch both at once. QEMU latches them one after the
// other, and its host may be descheduled in between: a latch command that took
// too long is repeated.
//
// This needs counter 0 as well, so the clock reserves the timer "pit" when it
// becomes the kernel's clock, and while it measures the TSC. If it cannot (on a
// machine without an APIC the events need it, once they have begun), it uses
// counter 2 alone, and the TSC gives the number of whole periods between two
// reads: an error of half a period in half a minute is good enough for that. It
// also does so if the chip is an 8253, which cannot latch two counters at one
// instant (pit_chip.c). Only a TSC that is worse, or may be, leaves the clock
// with 16 bits: then it must be read every 27 ms, as `mask` states.
//
// All state is accessed between pit_enter and pit_leave, except `total`, which
// an NMI reads when it interrupts a reading: it gets the newest complete
// reading. So time does not advance for this NMI, and none is lost.
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/dev/port.h"
#include "kernel/time/timecounter.h"

#define STEP 64u // what counter 2 gains in each period of counter 0
#define PERIOD_0 65536u
#define PERIOD_2 (PERIOD_0 - STEP)
#define ROUNDS (PERIOD_2 / STEP)
#define PAIR_TICKS (ROUNDS * PERIOD_0) // after which both start over
#define MASK 0x1ffffffu                // 28 s, half of that
#define MASK_ALONE 0xffffu             // counter 2, without a TSC
_Static_assert(PERIOD_2 % STEP == 0 && MASK < PAIR_TICKS, "the pair");
_Static_assert((MASK & (MASK + 1)) == 0 && (MASK_ALONE & (MASK_ALONE + 1)) == 0,
               "timecounter.h: masks");

#define LATCH_LIMIT_US 20u   // 31 ticks are 26 us
#define ALONE_LIMIT_US 1000u // half a period is 27 ms
#define LATCH_ATTEMPTS 16u
// Until the TSC's rate is known (it may be measured by this clock): a latch may
// take this many times as long as the shortest one.
#define LATCH_LIMIT_TIMES 8u

#define SPEAKER 0x61 // the gate of counter 2
#define SPEAKER_GATE 0x01
#define SPEAKER_ON 0x02

struct instant {
    u32 zero, two; // the counters, counting up
    u64 tsc;
};

static u32 total;            // ticks, modulo 2^32; read by NMIs
static struct timer *pit;    // reserved: both counters run
static u32 start_0, start_2; // the counters when the pair started
static u32 last_pair;        // the last reading, modulo PAIR_TICKS
static u32 last_2;           // counter 2 alone: its last reading,
static u64 last_tsc;         // the TSC then,
static u32 last_cpu;         // and the CPU that read it
static u64 shortest_latch;   // TSC cycles

static bool tsc_is_good(void)
{
    FOR_EACH_TIMECOUNTER(tc)
    {
        if ((*tc)->rank == RANK_TSC)
            return clock_tsc_hz() && !READ_ONCE((*tc)->why_not) &&
                   timecounter_rate_is_known(*tc);
    }
    return false;
}

// The counters count down, from their period to 1.
static u32 up_0(u16 raw)
{
    return (PERIOD_0 - raw) % PERIOD_0;
}

static u32 up_2(u16 raw)
{
    return (PERIOD_2 - raw) % PERIOD_2;
}

// Ticks since the pair started, from both counters' ticks since then.
static u32 pair_ticks(u32 zero, u32 two)
{
    u32 gain = (two + 2 * PERIOD_2 - zero + STEP / 2) % PERIOD_2;
    return gain / STEP * PERIOD_0 + zero;
}

// Reads counter 2, and counter 0 if `both`, at one TSC value, within the limit.
// False: every latch took too long.
static bool read_at_once(bool both, struct instant *now)
{
    u32 us = both ? LATCH_LIMIT_US : ALONE_LIMIT_US;
    u64 limit = clock_tsc_hz() / (1000000 / us);
    if (!limit)
        limit = shortest_latch * LATCH_LIMIT_TIMES;
    for (u32 i = 0; i < LATCH_ATTEMPTS; i++) {
        now->tsc = rdtsc();
        pit_latch(both ? 1u << 0 | 1u << 2 : 1u << 2);
        u64 took = rdtsc() - now->tsc;
        now->zero = both ? up_0(pit_read_latched(0)) : 0;
        now->two = up_2(pit_read_latched(2));
        if (took <= limit)
            return true;
        cpu_relax();
    }
    return false;
}

// Records the reading from which counter 2 alone would continue.
static void remember(const struct instant *now)
{
    last_2 = now->two;
    last_tsc = now->tsc;
    last_cpu = this_cpu()->id;
}

static void advance_pair(const struct instant *at)
{
    u32 zero = (at->zero + PERIOD_0 - start_0) % PERIOD_0;
    u32 two = (at->two + PERIOD_2 - start_2) % PERIOD_2;
    u32 now = pair_ticks(zero, two);
    WRITE_ONCE(total, total + (now + PAIR_TICKS - last_pair) % PAIR_TICKS);
    last_pair = now;
}

// Whole periods of counter 2 that passed in addition to `ticks`, by the TSC. 0
// if another CPU read it last and the CPUs' TSCs are not known to agree.
static u32 periods_missed(u64 tsc, u32 ticks)
{
    u64 hz = clock_tsc_hz();
    if (!hz || (s64)(tsc - last_tsc) < 0 ||
        (this_cpu()->id != last_cpu && !tsc_is_good()))
        return 0;
    u64 passed = (tsc - last_tsc) * PIT_HZ / hz;
    return (u32)((passed + PERIOD_2 / 2 - MIN(ticks, passed)) / PERIOD_2);
}

static void advance_single(const struct instant *now)
{
    u32 ticks = (now->two + PERIOD_2 - last_2) % PERIOD_2;
    ticks += periods_missed(now->tsc, ticks) * PERIOD_2;
    WRITE_ONCE(total, total + ticks);
}

// Between enter and leave. If the counters cannot be read, the next reading
// makes up for it.
static void advance(void)
{
    struct instant now;
    if (!read_at_once(pit, &now))
        return;
    if (pit)
        advance_pair(&now);
    else
        advance_single(&now);
    remember(&now);
}

static u64 pit_clock_read(void)
{
    u32 flags;
    if (!pit_enter(&flags))
        return READ_ONCE(total);
    advance();
    u32 now = total;
    pit_leave(flags);
    return now;
}

static void find_shortest_latch(void)
{
    shortest_latch = ~0ull;
    for (u32 i = 0; i < LATCH_ATTEMPTS; i++) {
        u64 before = rdtsc();
        pit_latch(1u << 2);
        u64 took = rdtsc() - before;
        shortest_latch = MIN(shortest_latch, took);
        pit_read_latched(2);
    }
}

static const char *pit_clock_probe(struct timecounter *tc)
{
    u32 flags;
    u8 speaker = in8(SPEAKER);
    out8(SPEAKER, (u8)((speaker | SPEAKER_GATE) & ~SPEAKER_ON));
    if (!pit_enter(&flags))
        return "it is in use";
    pit_identify(2);
    pit_load(2, PIT_RATE, PERIOD_2);
    pit_wait_loaded(2);
    const char *why_not = pit_why_no_count(2, PERIOD_2);
    find_shortest_latch();
    last_2 = up_2(pit_read(2));
    last_tsc = rdtsc();
    pit_leave(flags);
    tc->note = pit_has_read_back() ? NULL : "an 8253: no read-back command";
    return why_not;
}

static void begin_pair(struct timer *t)
{
    struct instant now;
    pit_load(0, PIT_RATE, PERIOD_0);
    pit_wait_loaded(0);
    if (!read_at_once(true, &now))
        return;
    advance_single(&now);
    remember(&now);
    start_0 = now.zero;
    start_2 = now.two;
    last_pair = 0;
    pit = t;
}

static void take_pair(void)
{
    u32 flags;
    struct timer *t;
    if (!pit_has_read_back() || timer_reserve_name("pit", "the clock", &t))
        return;
    // Without the TSC's rate this is the calibration: there are no events yet.
    if ((!clock_tsc_hz() || !clock_events_use(t)) && pit_enter(&flags)) {
        begin_pair(t);
        pit_leave(flags);
    }
    if (!pit)
        timer_release(t);
}

static void pit_clock_start(struct timecounter *tc)
{
    take_pair();
    WRITE_ONCE(tc->mask, pit || tsc_is_good() ? MASK : MASK_ALONE);
}

static void pit_clock_stop(struct timecounter *tc)
{
    u32 flags;
    struct timer *t = pit;
    WRITE_ONCE(tc->mask, MASK_ALONE); // racing readers read again
    if (!t || !pit_enter(&flags))
        return;
    advance();
    pit = NULL;
    pit_halt(0);
    pit_leave(flags);
    timer_release(t);
}

static struct timecounter pit_clock = {
    .name = "pit",
    .rank = RANK_PIT,
    .hz = PIT_HZ,
    .mask = MASK_ALONE,
    .read = pit_clock_read,
    .probe = pit_clock_probe,
    .start = pit_clock_start,
    .stop = pit_clock_stop,
};
TIMECOUNTER(pit_clock);
