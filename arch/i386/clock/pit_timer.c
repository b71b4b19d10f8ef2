// The interval timer's counter 0 as a timer, on ISA interrupt 0. (Counter 2
// belongs to the clock; counter 1 was once used for memory refresh.)
//
// Random distances are a row of one-shots: the interrupt of each sets the next
// one, from where it was due by the TSC. While the counter is reserved for this
// timer, only the boot CPU writes its port, so an NMI needs no lock for that:
// it ignores a row until it is complete (`armed`).
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/irq/controllers.h"
#include "arch/nmi.h"
#include "kernel/base/errno.h"
#include "lib/random_distance.h"

#define COUNTER 0
#define ISA_IRQ 0
#define TICKS_MIN 12u // 10 us, the duration of an interrupt
#define TICKS_MAX 65536u
#define TICKS_MAX_8253 32768u // pit_ended: for as long an end is recognised
#define READS_MAX 100000u     // limit, for a counter that does not count

static struct irq_source source;
// Accessed by the boot CPU only, with interrupts off:
static u32 opened; // the mode for which the interrupt is open; 0: closed
static bool armed; // a shot is loaded and has not been served
static u32 count;  // of the shot
// When it ends, by the TSC: at random distances, or without the read-back
// command.
static u64 due;

static struct {
    u32 period, most; // TSC cycles
    u32 ticks;        // in 2^32 cycles
} row;

static u32 ticks_max(void)
{
    return pit_has_read_back() ? TICKS_MAX : TICKS_MAX_8253;
}

static const char *why_no_count(void)
{
    u32 flags;
    if (!pit_enter(&flags))
        return "it is in use";
    pit_load(COUNTER, PIT_RATE, TICKS_MAX);
    pit_wait_loaded(COUNTER);
    const char *why_not = pit_why_no_count(COUNTER, TICKS_MAX);
    pit_halt(COUNTER);
    pit_leave(flags);
    return why_not;
}

static void read_once(void)
{
    u32 flags;
    if (!pit_enter(&flags))
        return;
    pit_read(COUNTER);
    pit_leave(flags);
}

// Whether its interrupts reach this CPU. There may be no clock yet, so reads of
// the counter serve as delay: each takes at least a microsecond.
static bool interrupts(struct timer *t)
{
    if (t->start(t, TIMER_ONESHOT, TICKS_MIN))
        return false;
    for (u32 i = 0; i < READS_MAX && !irq_source_requested(&source); i++)
        read_once();
    bool arrives = irq_source_requested(&source);
    t->stop(t);
    return arrives;
}

static const char *pit_probe(struct timer *t)
{
    t->min_period = timer_ns(t, TICKS_MIN);
    t->max_period = timer_ns(t, ticks_max());
    t->delay = timer_ns(t, 2);
    const char *why_not = why_no_count();
    if (why_not)
        return why_not;
    if (irq_source_isa(&source, ISA_IRQ, timer_interrupt, t, "pit"))
        return "it has no interrupt line";
    t->line = source.line.gsi + 1;
    t->vector = source.vector;
    if (irq_targets_all(&source))
        t->flags |= TIMER_ALL_CPUS | TIMER_NMI;
    return interrupts(t) ? NULL : TIMER_SILENT;
}

static int load(u32 mode, u32 ticks)
{
    u32 flags;
    if (!pit_enter(&flags))
        return -EINVAL; // never: not called in an NMI
    pit_load(COUNTER, mode, ticks);
    pit_leave(flags);
    return 0;
}

static int open_line(u32 mode)
{
    if (opened == mode)
        return 0;
    opened = mode;
    return irq_source_open(&source, timer_target(mode));
}

// The mean of random distances of mean `period` that are cut at `most`:
// period (1 - exp(-most / period)), of which the power is that of a 1024th.
static u32 cut_mean(u32 period, u32 most)
{
    if (most / period >= RANDOM_MOST)
        return period;
    u64 power = (1u << 30) - ((u64)most << 20) / period;
    for (u32 i = 0; i < 10; i++)
        power = power * power >> 30;
    return period - (u32)(period * power >> 30);
}

// Sets the first shot of a row, of a period. If it may have ended while it was
// ignored, it is set again.
static int start_row(u32 period)
{
    u64 began;
    int err;
    row.period = (u32)(period * clock_tsc_hz() / PIT_HZ);
    row.most = (u32)((u64)row.period * ticks_max() / period);
    row.ticks = (u32)(((u64)PIT_HZ << 32) / clock_tsc_hz());
    do {
        WRITE_ONCE(armed, false);
        barrier();
        began = rdtsc();
        due = began + row.period;
        err = load(PIT_ONE_SHOT, period);
        barrier();
        WRITE_ONCE(armed, true);
    } while (!err && rdtsc() - began > row.period / 2);
    return err;
}

// An early interrupt, by a rate of the TSC that is not exact, is the shot's,
// too.
//
// If this CPU was late, the others are notified of the shots that they have
// missed, since the counts may be read before the next one.
static NOTRACE bool next_in_row(struct timer *t)
{
    if (!READ_ONCE(armed))
        return false;
    u64 now = rdtsc();
    due = MIN(due, now);
    u32 shots = random_row_pass(&t->seed, &due, now, row.period);
    counter_add(&t->shots, shots);
    due = MIN(due, now + row.most);
    u32 left = due > now ? (u32)(due - now) : 0;
    pit_load_again(COUNTER, (u32)((u64)left * row.ticks >> 32) + 1);
    if (unlikely(shots > 1) && opened & TIMER_NMI && !READ_ONCE(timers_in_test))
        nmi_send_others();
    return true;
}

// Loading a rate raises the line, so the line is opened after it; a one-shot
// needs the line open before. NMIs, which may interrupt the holder of the 8254,
// set no shots.
static int pit_start(struct timer *t, u32 mode, u64 ticks)
{
    count = (u32)MIN(ticks, (u64)ticks_max());
    if (mode & TIMER_RANDOM) {
        t->period = cut_mean(count, ticks_max());
        int err = open_line(mode);
        return err ? err : start_row(count);
    }
    if (mode & TIMER_PERIODIC) {
        int err = load(PIT_RATE, count);
        return err ? err : open_line(mode);
    }
    if (mode & TIMER_NMI)
        return -EINVAL;
    int err = open_line(mode);
    armed = !err;
    if (!pit_has_read_back())
        due = rdtsc() + count * clock_tsc_hz() / PIT_HZ;
    return err ? err : load(PIT_ONE_SHOT, count);
}

// A one-shot's interrupt is the rise of OUT, which then stays high. If OUT is
// low, the interrupt is stale: QEMU 7.2 raises the line once more up to 55 ms
// after a rate was stopped, and an 8259 keeps a request that arrived while the
// line was closed. A stale interrupt that finds OUT high is taken for the
// shot's, and the shot's own is then ignored. Without the read-back command the
// count tells whether the shot has ended, or, if that is long ago, the TSC.
static NOTRACE bool is_past_due(void)
{
    return !pit_has_read_back() && rdtsc() >= due;
}

static NOTRACE bool pit_serve(struct timer *t)
{
    u32 flags;
    if (!opened) // it was on its way when the timer was stopped
        return false;
    if (opened & TIMER_RANDOM)
        return next_in_row(t);
    if (!(opened & TIMER_ONESHOT))
        return true;
    bool past = is_past_due();
    if (!pit_enter(&flags))
        return true;
    bool shot = armed && (past || pit_ended(COUNTER, count));
    armed = armed && !shot;
    pit_leave(flags);
    return shot;
}

static void pit_stop(struct timer *t UNUSED)
{
    u32 flags;
    irq_source_close(&source);
    WRITE_ONCE(armed, false); // an NMI may still come
    opened = 0;
    if (!pit_enter(&flags))
        return;
    pit_halt(COUNTER);
    pit_leave(flags);
}

static struct timer pit = {
    .name = "pit",
    .rank = TIMER_RANK_PIT,
    .flags = TIMER_PERIODIC | TIMER_ONESHOT | TIMER_RANDOM,
    .hz = PIT_HZ,
    .probe = pit_probe,
    .start = pit_start,
    .serve = pit_serve,
    .stop = pit_stop,
};
TIMER(pit);
