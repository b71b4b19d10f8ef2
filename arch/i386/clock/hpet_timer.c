// The HPET's comparators as timers. Each interrupts by messages (MSI) if it
// can, else by one of the I/O APIC's lines that it is wired to, and by one of
// its own if there are enough. A comparator with only the PIT's or the RTC's
// line shares that line, and only one of the two timers can be reserved.
//
// A period is a row of one-shots, on a fixed grid or at random distances: at
// each interrupt the boot CPU sets the next one, from where the last one was
// due. So comparators without a periodic mode can be used, and QEMU's periodic
// mode, which fires each tick twice under -icount, is avoided.
//
// Only the boot CPU starts a row, serves its interrupts and stops it. NMIs
// ignore a row until it is complete (`row`).
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/clock/hpet.h"
#include "arch/i386/irq/controllers.h"
#include "arch/nmi.h"
#include "kernel/base/errno.h"
#include "lib/random_distance.h"

// A comparator set to a point this near may miss it: the counter's value is
// some ticks old when the comparator is written.
#define MARGIN 64u
#define PERIOD_MIN_NS 10000u
#define GRID_MIN_NS 100000u
#define TICKS_MAX 0x7fffffffu

#define FIRST_FREE_GSI 16u // lower ones are ISA interrupts
#define PIT_IRQ 0
#define RTC_IRQ 8

#define TEST_NS 50000u
#define CATCH_UP_TRIALS 8u
#define CATCH_UP_MAX_NS 1000000u

#define MESSAGE_ADDRESS 0xfee00000u // SDM vol. 3, 11.11.1
#define MESSAGE_DESTINATION(id) ((id) << 12)
#define MESSAGE_LOGICAL (1u << 2)

enum { NO_ROW, EVEN_ROW, RANDOM_ROW };

struct comparator {
    struct timer timer;
    struct irq_source source;
    volatile u32 *value; // its comparator register, low half and high half
    bool wide;           // 64 bits
    u32 opened;          // the mode for which the interrupt is open; 0: closed
    u32 ticks;           // the period; 0: one shot
    bool random;         // random distances
    u8 row;              // NO_ROW: its interrupts set no next tick
    u32 reach;           // the longest distance of a row
    u32 grid_min;        // least ticks until the first point of a row
    u32 catch_up;        // least ticks that catch_up takes on this CPU
    // The value of the comparator register. Another CPU may set a new one-shot
    // while the interrupt of the old one reads `due` and `armed`: at worst the
    // interrupt is taken for the new one's, when both are due.
    u32 due, high;
    bool armed; // atomic
} __attribute__((aligned(64)));

static u32 gsis_used; // as bits

static ALWAYS_INLINE struct comparator *comparator_of(struct timer *t)
{
    return container_of(t, struct comparator, timer);
}

static NOTRACE u64 counter(const struct comparator *c)
{
    u32 high, low;
    if (!c->wide)
        return hpet_read(HPET_COUNTER);
    do {
        high = hpet_read(HPET_COUNTER_HIGH);
        low = hpet_read(HPET_COUNTER);
    } while (hpet_read(HPET_COUNTER_HIGH) != high);
    return (u64)high << 32 | low;
}

// While the high half changes, the two halves are briefly inconsistent: an
// interrupt in that time finds nothing due.
static void set_comparator(struct comparator *c, u64 due)
{
    WRITE_ONCE(c->due, (u32)due);
    if (due >> 32 != c->high && c->wide) {
        c->high = (u32)(due >> 32);
        c->value[1] = c->high;
    }
    c->value[0] = (u32)due;
}

// In a row: moves the comparator on by that many ticks.
static ALWAYS_INLINE void advance(struct comparator *c, u32 ticks)
{
    u32 due = c->due + ticks;
    WRITE_ONCE(c->due, due);
    if (unlikely(due < ticks) && c->wide)
        c->value[1] = ++c->high;
    c->value[0] = due;
}

// The distance from a row's point that is due to the next one.
static ALWAYS_INLINE u32 next_distance(struct comparator *c, bool random)
{
    if (!random)
        return c->ticks;
    counter_add(&c->timer.shots, 1);
    return (u32)random_distance(&c->timer.seed, c->ticks);
}

// Ticks from now until it is due; negative if that is past.
static s32 ticks_to_due(const struct comparator *c)
{
    return (s32)(READ_ONCE(c->due) - hpet_read(HPET_COUNTER));
}

// Claims the one-shot, for its interrupt or for a caller that finds it late.
// True for one of them only.
static bool claim_shot(struct comparator *c)
{
    return __atomic_exchange_n(&c->armed, false, __ATOMIC_ACQ_REL);
}

// It is armed once the comparator is set: earlier interrupts belong to no shot.
static void arm_shot(struct comparator *c, u32 ticks)
{
    do {
        __atomic_store_n(&c->armed, false, __ATOMIC_RELEASE);
        set_comparator(c, counter(c) + ticks);
        __atomic_store_n(&c->armed, true, __ATOMIC_RELEASE);
        ticks += MARGIN;
    } while (ticks_to_due(c) <= 0 && claim_shot(c));
}

// Whether a row's next tick is in the valid range: neither past, nor so near
// that it may be missed, nor further away than the longest distance.
static ALWAYS_INLINE bool in_time(const struct comparator *c)
{
    return (u32)ticks_to_due(c) - MARGIN <= c->reach;
}

// The row's next point is past or near. Those of whole periods are skipped.
// Then an even one is skipped, too; a random one is set as soon as it can be,
// but if that has passed, too, when it is set (QEMU's --icount lets other CPUs
// run meanwhile), the next one. Each attempt sets a point that is ahead,
// however much time passes between two. Or the row is late by more than the
// counter's low half can express: then a new row begins, and random shots of
// that time are not counted. While the boot CPU was held up, no tick was set
// for the other CPUs either. They are notified of the missed ticks now, not by
// the next tick only, since the counts may be read before that.
static NOINLINE NOTRACE void catch_up(struct comparator *c)
{
    bool skipped = false;
    for (u32 tries = 0; !in_time(c); tries++) {
        s32 left = ticks_to_due(c);
        u32 late = MARGIN - (u32)left, periods = late / c->ticks;
        if (left >= (s32)MARGIN) {
            set_comparator(c, counter(c) + c->ticks + MARGIN);
        } else if (!c->random) {
            advance(c, (periods + 1) * c->ticks);
        } else {
            counter_add(&c->timer.shots, periods);
            advance(c,
                    late + c->catch_up + (tries ? next_distance(c, true) : 0));
        }
        skipped |= left >= (s32)MARGIN || !c->random || periods || tries;
    }
    if (skipped && c->opened & TIMER_NMI && !READ_ONCE(timers_in_test))
        nmi_send_others();
}

// Starts a row at its first point, which must be far enough away not to become
// due while it is being set; earlier interrupts belong to no row.
static void start_row(struct comparator *c)
{
    do {
        WRITE_ONCE(c->row, NO_ROW);
        barrier();
        set_comparator(c, counter(c) + MAX(c->ticks, c->grid_min));
        barrier();
        WRITE_ONCE(c->row, c->random ? RANDOM_ROW : EVEN_ROW);
    } while (ticks_to_due(c) < (s32)MARGIN);
}

// Sets the row's next point that is not past. An early interrupt belongs to
// another device: the PIT, which may share the line, raises one last interrupt
// up to 55 ms after its stop (in QEMU 7.2). But a row's next point is never
// further away than the longest distance, or the first point's; if it seems to
// be, it is long past.
//
// The counter is read again after the comparator is set. Otherwise, after a
// delay between the two (an SMI, a hypervisor), a point that has passed would
// be awaited until the counter wraps.
static ALWAYS_INLINE bool next_shot(struct comparator *c, bool random)
{
    s32 left = ticks_to_due(c);
    if (unlikely(left > (s32)MARGIN) && (u32)left <= MAX(c->reach, c->grid_min))
        return false;
    advance(c, next_distance(c, random));
    if (unlikely(!in_time(c)))
        catch_up(c);
    return true;
}

static NOINLINE NOTRACE bool other_shot(struct comparator *c)
{
    if (likely(READ_ONCE(c->row) == RANDOM_ROW))
        return next_shot(c, true);
    return ticks_to_due(c) <= (s32)MARGIN && claim_shot(c);
}

static NOTRACE bool hpet_serve(struct timer *t)
{
    struct comparator *c = comparator_of(t);
    return READ_ONCE(c->row) == EVEN_ROW ? next_shot(c, false) : other_shot(c);
}

// --- interrupt routing

static int open_source(struct comparator *c, u32 mode)
{
    enum irq_target target = timer_target(mode);
    u32 n = c->timer.unit, config = hpet_read(HPET_TIMER(n));
    c->high = ~(u32)(counter(c) >> 32); // unknown: forces a write
    config &= ~(HPET_TIMER_LEVEL | HPET_TIMER_PERIODIC | HPET_TIMER_LINES |
                HPET_TIMER_MESSAGE | HPET_TIMER_32_MODE);
    if (!c->wide)
        config |= HPET_TIMER_32_MODE;
    if (c->source.message) {
        struct irq_message m;
        irq_message_for(&c->source, target, &m);
        hpet_write(HPET_MESSAGE_DATA(n), m.delivery | m.vector);
        hpet_write(HPET_MESSAGE_ADDRESS(n),
                   MESSAGE_ADDRESS | MESSAGE_DESTINATION(m.destination) |
                       (m.logical ? MESSAGE_LOGICAL : 0));
        config |= HPET_TIMER_MESSAGE;
    } else {
        config |= HPET_TIMER_LINE(c->source.line.gsi);
    }
    // Far in the future: the first shot is set when the source is open.
    set_comparator(c, counter(c) + TICKS_MAX);
    hpet_write(HPET_TIMER(n), config | HPET_TIMER_ON);
    c->opened = mode;
    return irq_source_open(&c->source, target);
}

static int hpet_start(struct timer *t, u32 mode, u64 ticks)
{
    struct comparator *c = comparator_of(t);
    int err = 0;
    if (mode & TIMER_RANDOM && ticks > TICKS_MAX / RANDOM_MOST)
        return -EINVAL;
    if (c->opened != mode) {
        c->ticks = mode & TIMER_PERIODIC ? (u32)ticks : 0;
        c->random = mode & TIMER_RANDOM;
        c->reach = c->random ? RANDOM_MOST * c->ticks : c->ticks;
        err = open_source(c, mode);
    }
    if (c->ticks)
        start_row(c);
    else
        arm_shot(c, (u32)ticks);
    return err;
}

static void hpet_stop(struct timer *t)
{
    struct comparator *c = comparator_of(t);
    u32 config = hpet_read(HPET_TIMER(t->unit));
    hpet_write(HPET_TIMER(t->unit), config & ~HPET_TIMER_ON);
    irq_source_close(&c->source);
    c->opened = 0;
    WRITE_ONCE(c->row, NO_ROW);
    claim_shot(c);
}

// --- discovery

static u32 bit_of_isa(u32 irq)
{
    u32 gsi = isa_lines[irq].gsi;
    return gsi < 32 ? 1u << gsi : 0;
}

// A line of its own; else one shared with the PIT or the RTC.
static u32 choose_lines(u32 routes)
{
    u32 own = routes & ~((1u << FIRST_FREE_GSI) - 1) & ~gsis_used;
    return own ? own : routes & (bit_of_isa(PIT_IRQ) | bit_of_isa(RTC_IRQ));
}

static int find_source(struct timer *t)
{
    u32 n = t->unit;
    struct comparator *c = comparator_of(t);
    if (hpet_read(HPET_TIMER(n)) & HPET_TIMER_CAN_MESSAGE)
        return irq_source_message(&c->source, timer_interrupt, t, t->name);
    u32 lines = choose_lines(hpet_read(HPET_TIMER_ROUTES(n)));
    if (!lines)
        return -ENODEV;
    u32 gsi = (u32)__builtin_ctz(lines);
    gsis_used |= 1u << gsi;
    t->line = gsi + 1;
    return irq_source_line(&c->source, gsi, timer_interrupt, t, t->name);
}

// Times catch_up, so that the point that it sets is still ahead when it checks
// that: a slow CPU takes long for the code, a virtual machine for the accesses.
// The least of several: a host that holds up some of them does no harm.
static void measure_catch_up(struct comparator *c)
{
    u32 least = (u32)timer_ticks(&c->timer, CATCH_UP_MAX_NS);
    c->random = true;
    c->ticks = c->reach = TICKS_MAX;
    c->catch_up = TICKS_MAX / 2;
    for (u32 i = 0; i < CATCH_UP_TRIALS; i++) {
        c->due = hpet_read(HPET_COUNTER);
        u32 start = c->due;
        catch_up(c);
        u32 took = hpet_read(HPET_COUNTER) - start;
        least = MIN(least, took);
    }
    c->catch_up = MAX(MARGIN, least);
}

static const char *hpet_probe(struct timer *t)
{
    const char *why_not = hpet_find();
    if (why_not)
        return why_not;
    u32 capabilities = hpet_read(HPET_CAPABILITIES), n = t->unit;
    if (n > HPET_LAST_TIMER(capabilities)) {
        t->flags |= TIMER_ABSENT;
        return "the HPET has fewer";
    }
    u32 config = hpet_read(HPET_TIMER(n)) & ~HPET_TIMER_ON;
    hpet_write(HPET_TIMER(n), config);
    struct comparator *c = comparator_of(t);
    c->value = hpet_registers + HPET_COMPARATOR(n) / 4;
    c->wide = capabilities & HPET_COUNTER_64 && config & HPET_TIMER_64;
    t->hz = hpet_hz();
    measure_catch_up(c);
    u32 nearest = MARGIN + c->catch_up; // point that can be set
    c->grid_min = MAX((u32)timer_ticks(t, GRID_MIN_NS), nearest);
    t->min_period = MAX((u64)PERIOD_MIN_NS, timer_ns(t, nearest));
    t->max_period = timer_ns(t, TICKS_MAX);
    t->delay = timer_ns(t, nearest);
    if (find_source(t))
        return "it has no interrupt line";
    t->vector = c->source.vector;
    if (!irq_targets_all(&c->source))
        t->flags &= ~(u32)(TIMER_ALL_CPUS | TIMER_NMI);
    bool arrives =
        timer_interrupts(t, &c->source, TIMER_ONESHOT, timer_ticks(t, TEST_NS));
    return arrives ? NULL : TIMER_SILENT;
}

// More than any known chip has.
#define HPET(n)                                                          \
    static struct comparator comparator##n = {                           \
        .timer.name = "hpet" #n,                                         \
        .timer.rank = TIMER_RANK_HPET - n,                               \
        .timer.flags = TIMER_PERIODIC | TIMER_ONESHOT | TIMER_ALL_CPUS | \
                       TIMER_NMI | TIMER_RANDOM,                         \
        .timer.unit = n,                                                 \
        .timer.probe = hpet_probe,                                       \
        .timer.start = hpet_start,                                       \
        .timer.stop = hpet_stop,                                         \
        .timer.serve = hpet_serve,                                       \
    };                                                                   \
    LINKER_SET_ADD_PART(timers, hpet##n, comparator##n.timer)

HPET(0);
HPET(1);
HPET(2);
HPET(3);
HPET(4);
HPET(5);
HPET(6);
HPET(7);
