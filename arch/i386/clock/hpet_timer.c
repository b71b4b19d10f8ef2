// The HPET's comparators as timers. Each interrupts by messages if it can, else
// by one of the I/O APIC's lines that it is wired to, one of its own if there
// are enough; who has only the PIT's or the RTC's line shares it with them, and
// only one of the two can be reserved.
//
// A period is a row of single shots, on a fixed grid or at random distances:
// the boot CPU sets the next one at each interrupt, from where the last one was
// due. So comparators without a periodic mode do as well, and QEMU's, which
// fires each tick twice under -icount, does no harm.
//
// A row is the boot CPU's alone: it starts it, serves its interrupts and stops
// it. NMIs keep off until the row is complete (`row`).
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/clock/hpet.h"
#include "arch/i386/irq/controllers.h"
#include "arch/nmi.h"
#include "kernel/base/errno.h"
#include "lib/random_distance.h"

// A comparator that is set to a moment so near may miss it: what the counter
// says is some ticks old on the way there and back.
#define MARGIN 64u
#define PERIOD_MIN_NS 10000u
#define GRID_MIN_NS 100000u
#define TICKS_MAX 0x7fffffffu

#define FIRST_FREE_GSI 16u // below are the ISA interrupts
#define PIT_IRQ 0
#define RTC_IRQ 8

#define TEST_NS 50000u

#define MESSAGE_ADDRESS 0xfee00000u // SDM vol. 3, 11.11.1
#define MESSAGE_DESTINATION(id) ((id) << 12)
#define MESSAGE_LOGICAL (1u << 2)

enum { NO_ROW, EVEN_ROW, RANDOM_ROW };

struct comparator {
    struct timer timer;
    struct irq_source source;
    volatile u32 *value; // its register, low half and high
    bool wide;           // 64 bits
    u32 opened;          // the mode for which the interrupt is open; 0: closed
    u32 ticks;           // the period; 0: one shot
    bool random;         // the distances are
    u8 row;              // NO_ROW: its interrupts set no next tick
    u32 reach;           // the longest distance of a row
    u32 grid_min;        // ticks until the first of a row may come
    // What its register was set to. Of a single shot another CPU may set a new
    // one while the old one's interrupt looks at `due` and whether it is still
    // `armed`: at worst the new one is taken for the old one's, when both are
    // due.
    u32 due, high;
    bool armed; // atomic
} __attribute__((aligned(64)));

static u32 gsis_taken; // as bits

static ALWAYS_INLINE struct comparator *mine(struct timer *t)
{
    return container_of(t, struct comparator, timer);
}

static u64 counter(const struct comparator *c)
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

// If the high half changes, the two together are a wrong moment for an instant:
// an interrupt then finds that nothing is due.
static void set_comparator(struct comparator *c, u64 due)
{
    WRITE_ONCE(c->due, (u32)due);
    if (due >> 32 != c->high && c->wide) {
        c->high = (u32)(due >> 32);
        c->value[1] = c->high;
    }
    c->value[0] = (u32)due;
}

// In a row: that many ticks on.
static ALWAYS_INLINE void advance(struct comparator *c, u32 ticks)
{
    u32 due = c->due + ticks;
    WRITE_ONCE(c->due, due);
    if (unlikely(due < ticks) && c->wide)
        c->value[1] = ++c->high;
    c->value[0] = due;
}

// From the shot of a row that came due to the next one.
static ALWAYS_INLINE u32 next_distance(struct comparator *c, bool random)
{
    if (!random)
        return c->ticks;
    counter_add(&c->timer.shots, 1);
    return random_distance(&c->timer.seed, c->ticks);
}

// Ticks from now until it is due; negative when that is past.
static s32 ahead(const struct comparator *c)
{
    return (s32)(READ_ONCE(c->due) - hpet_read(HPET_COUNTER));
}

// Who gets true has the shot: its interrupt, or who found it late.
static bool take_shot(struct comparator *c)
{
    return __atomic_exchange_n(&c->armed, false, __ATOMIC_ACQ_REL);
}

// It is armed when it is complete: what interrupts earlier is of no shot.
static void shoot(struct comparator *c, u32 ticks)
{
    do {
        __atomic_store_n(&c->armed, false, __ATOMIC_RELEASE);
        set_comparator(c, counter(c) + ticks);
        __atomic_store_n(&c->armed, true, __ATOMIC_RELEASE);
        ticks += MARGIN;
    } while (ahead(c) <= 0 && take_shot(c));
}

// Whether a row's next tick is set to where it belongs: neither so near that it
// may be missed, or past, nor further away than a distance can be.
static ALWAYS_INLINE bool in_time(const struct comparator *c)
{
    return (u32)ahead(c) - MARGIN <= c->reach;
}

// Past those that have come due, or are about to, in `late` ticks: whole
// periods at once.
static void skip(struct comparator *c, u32 late)
{
    u32 periods = late / c->ticks, distance = periods * c->ticks;
    if (c->random)
        counter_add(&c->timer.shots, periods);
    do
        distance += next_distance(c, c->random);
    while (distance <= late);
    advance(c, distance);
}

// It is late by whole periods, or by more than the counter's low half can tell:
// then a new row begins, and random shots of that time are not counted. As long
// as the boot CPU was held up, no tick was set for the others either; what they
// have missed they are told of now, not only by the next one, before which
// somebody may look at what was counted.
static NOINLINE void catch_up(struct comparator *c)
{
    while (!in_time(c)) {
        s32 left = ahead(c);
        if (left < (s32)MARGIN)
            skip(c, MARGIN - (u32)left);
        else
            set_comparator(c, counter(c) + c->ticks + MARGIN);
    }
    if (c->opened & TIMER_NMI)
        nmi_send_others();
}

// From the first point of the grid on, which must be too far away to come while
// it is being set; what interrupts before it is complete is of no row.
static void start_row(struct comparator *c)
{
    do {
        WRITE_ONCE(c->row, NO_ROW);
        barrier();
        set_comparator(c, counter(c) + MAX(c->ticks, c->grid_min));
        barrier();
        WRITE_ONCE(c->row, c->random ? RANDOM_ROW : EVEN_ROW);
    } while (ahead(c) < (s32)MARGIN);
}

// Sets the next point of the row that is not past. What comes early is
// somebody else's: the PIT, whose line this may be, gives one last interrupt up
// to 55 ms after its stop (in QEMU 7.2). But the next point of a row is never
// further away than a distance can be, or the first of it; what seems to be is
// long past.
//
// The counter is read again when the comparator is set: whatever came between
// (an SMI, a hypervisor), a point that has passed meanwhile would be waited for
// until the counter comes round.
static ALWAYS_INLINE bool next_shot(struct comparator *c, bool random)
{
    s32 left = ahead(c);
    if (unlikely(left > (s32)MARGIN) && (u32)left <= MAX(c->reach, c->grid_min))
        return false;
    advance(c, next_distance(c, random));
    if (unlikely(!in_time(c)))
        catch_up(c);
    return true;
}

static NOINLINE bool other_shot(struct comparator *c)
{
    if (likely(READ_ONCE(c->row) == RANDOM_ROW))
        return next_shot(c, true);
    return ahead(c) <= (s32)MARGIN && take_shot(c);
}

static bool hpet_serve(struct timer *t)
{
    struct comparator *c = mine(t);
    return READ_ONCE(c->row) == EVEN_ROW ? next_shot(c, false) : other_shot(c);
}

// --- where the interrupts go

static int open_source(struct comparator *c, u32 mode)
{
    enum irq_target target = timer_target(mode);
    u32 n = c->timer.unit, config = hpet_read(HPET_TIMER(n));
    c->high = ~(u32)(counter(c) >> 32); // not known: it is written
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
    // Neither now nor soon: the first shot is set when all is open.
    set_comparator(c, counter(c) + TICKS_MAX);
    hpet_write(HPET_TIMER(n), config | HPET_TIMER_ON);
    c->opened = mode;
    return irq_source_open(&c->source, target);
}

static int hpet_start(struct timer *t, u32 mode, u64 ticks)
{
    struct comparator *c = mine(t);
    int err = 0;
    if (c->opened != mode) {
        c->ticks = mode & TIMER_PERIODIC ? (u32)ticks : 0;
        c->random = mode & TIMER_RANDOM;
        c->reach = c->ticks + (c->random ? c->ticks / 2 + 1 : 0);
        err = open_source(c, mode);
    }
    if (c->ticks)
        start_row(c);
    else
        shoot(c, (u32)ticks);
    return err;
}

static void hpet_stop(struct timer *t)
{
    struct comparator *c = mine(t);
    u32 config = hpet_read(HPET_TIMER(t->unit));
    hpet_write(HPET_TIMER(t->unit), config & ~HPET_TIMER_ON);
    irq_source_close(&c->source);
    c->opened = 0;
    WRITE_ONCE(c->row, NO_ROW);
    take_shot(c);
}

// --- finding them

static u32 bit_of_isa(u32 irq)
{
    u32 gsi = isa_lines[irq].gsi;
    return gsi < 32 ? 1u << gsi : 0;
}

// One of its own; else one that the PIT or the RTC has as well.
static u32 choose_lines(u32 routes)
{
    u32 own = routes & ~((1u << FIRST_FREE_GSI) - 1) & ~gsis_taken;
    return own ? own : routes & (bit_of_isa(PIT_IRQ) | bit_of_isa(RTC_IRQ));
}

static int find_source(struct timer *t)
{
    u32 n = t->unit;
    struct comparator *c = mine(t);
    if (hpet_read(HPET_TIMER(n)) & HPET_TIMER_CAN_MESSAGE)
        return irq_source_message(&c->source, timer_interrupt, t, t->name);
    u32 lines = choose_lines(hpet_read(HPET_TIMER_ROUTES(n)));
    if (!lines)
        return -ENODEV;
    u32 gsi = (u32)__builtin_ctz(lines);
    gsis_taken |= 1u << gsi;
    t->line = gsi + 1;
    return irq_source_line(&c->source, gsi, timer_interrupt, t, t->name);
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
    struct comparator *c = mine(t);
    c->value = hpet_registers + HPET_COMPARATOR(n) / 4;
    c->wide = capabilities & HPET_COUNTER_64 && config & HPET_TIMER_64;
    t->hz = hpet_hz();
    c->grid_min = (u32)timer_ticks(t, GRID_MIN_NS);
    t->min_period = MAX((u64)PERIOD_MIN_NS, timer_ns(t, 2 * MARGIN));
    t->max_period = timer_ns(t, TICKS_MAX);
    if (find_source(t))
        return "it has no interrupt line";
    t->vector = c->source.vector;
    bool arrives =
        timer_interrupts(t, &c->source, TIMER_ONESHOT, timer_ticks(t, TEST_NS));
    return arrives ? NULL : TIMER_SILENT;
}

// More than any chip we know of has.
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
