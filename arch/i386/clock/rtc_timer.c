// The RTC's periodic interrupt as a timer (MC146818 data sheet): 2 to 8192 Hz,
// in powers of two, on ISA interrupt 8. Longer periods, of whole seconds, use
// its alarm, which each interrupt sets for the next one; not available as NMI.
// If an alarm is missed, the next one occurs a minute later.
//
// The chip raises no further interrupt until register C is read; the boot CPU
// reads it without the lock (cmos.c). The date is not affected: only the rate
// and the enable bit of the periodic interrupt are written, each in one access.
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/clock/rtc_format.h"
#include "kernel/base/errno.h"

#define ISA_IRQ 8
#define RTC_HZ 32768u
#define RATE_FIRST 3u // 8192 Hz: 4 ticks; each further one is twice as long
#define RATE_LAST 15u
#define RATE_USUAL 6u // 1024 Hz, the firmware's default
#define TICKS(rate) (1u << ((rate)-1))
#define ALARM_SECONDS_MAX 59u

static struct irq_source source;
static u32 alarm_seconds; // period of the alarm; 0: the interrupt is periodic

static void set_rate(u32 rate)
{
    cmos_change(RTC_A, RTC_A_RATE, (u8)rate);
}

// Whether there is a chip: its registers keep what is written to them, and its
// time is kept by a battery or a host.
static bool answers(void)
{
    set_rate(RATE_LAST);
    bool kept = (cmos_read(RTC_A) & RTC_A_RATE) == RATE_LAST;
    set_rate(RATE_USUAL);
    return kept && (cmos_read(RTC_A) & RTC_A_RATE) == RATE_USUAL;
}

static const char *rtc_probe(struct timer *t)
{
    t->min_period = timer_ns(t, TICKS(RATE_FIRST));
    t->max_period = ALARM_SECONDS_MAX * NSEC_PER_SEC;
    cmos_change(RTC_B, RTC_B_INTERRUPTS, 0);
    if (!answers())
        return "it does not answer";
    if (irq_source_isa(&source, ISA_IRQ, timer_interrupt, t, "rtc"))
        return "it has no interrupt line";
    t->line = source.line.gsi + 1;
    t->vector = source.vector;
    if (irq_targets_all(&source))
        t->flags |= TIMER_ALL_CPUS | TIMER_NMI;
    bool arrives =
        timer_interrupts(t, &source, TIMER_PERIODIC, TICKS(RATE_FIRST));
    return arrives ? NULL : TIMER_SILENT;
}

// The nearest rate; the boundary between two rates is their geometric mean.
static u32 nearest_rate(u64 ticks)
{
    u32 rate = RATE_FIRST;
    while (rate < RATE_LAST && ticks * ticks > 2ull * TICKS(rate) * TICKS(rate))
        rate++;
    return rate;
}

// The seconds are readable here: the alarm occurs at the end of an update, a
// second before the next one.
static NOINLINE void set_next_alarm(void)
{
    u8 now = cmos_read(RTC_SECONDS), b = cmos_read(RTC_B);
    cmos_write(RTC_SECONDS_ALARM, rtc_second_after(now, alarm_seconds, b));
}

// The first alarm is at the next second.
static int start_alarm(struct timer *t, u32 mode, u32 seconds)
{
    if (mode & TIMER_NMI)
        return -EINVAL;
    t->period = seconds * RTC_HZ;
    alarm_seconds = seconds;
    cmos_write(RTC_SECONDS_ALARM, RTC_ALARM_ANY);
    cmos_write(RTC_MINUTES_ALARM, RTC_ALARM_ANY);
    cmos_write(RTC_HOURS_ALARM, RTC_ALARM_ANY);
    int err = irq_source_open(&source, timer_target(mode));
    cmos_change(RTC_B, RTC_B_ALARM, RTC_B_ALARM);
    return err;
}

static int rtc_start(struct timer *t, u32 mode, u64 ticks)
{
    if (ticks >= RTC_HZ)
        return start_alarm(t, mode, (u32)((ticks + RTC_HZ / 2) / RTC_HZ));
    u32 rate = nearest_rate(ticks);
    t->period = TICKS(rate);
    set_rate(rate);
    int err = irq_source_open(&source, timer_target(mode));
    cmos_change(RTC_B, RTC_B_PERIODIC, RTC_B_PERIODIC);
    return err;
}

static void rtc_stop(struct timer *t UNUSED)
{
    cmos_change(RTC_B, RTC_B_PERIODIC | RTC_B_ALARM, 0);
    alarm_seconds = 0;
    irq_source_close(&source);
    set_rate(RATE_USUAL);
}

static NOTRACE bool rtc_serve(struct timer *t UNUSED)
{
    cmos_acknowledge();
    if (unlikely(alarm_seconds))
        set_next_alarm();
    return true;
}

static struct timer rtc = {
    .name = "rtc",
    .rank = TIMER_RANK_RTC,
    .flags = TIMER_PERIODIC | TIMER_POWER_OF_TWO,
    .hz = RTC_HZ,
    .probe = rtc_probe,
    .start = rtc_start,
    .stop = rtc_stop,
    .serve = rtc_serve,
};
TIMER(rtc);
