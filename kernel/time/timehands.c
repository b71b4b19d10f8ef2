// The two timehands and their generation (time_page.h describes how they are
// read).
//
// A change: mark the page busy; read the counter; write the timehands that are
// not current; make them current. While the page is busy all other readers wait
// and do not read the counter. So every time reported before the change
// precedes the moment at which the new line begins, and no time reported after
// it does: time does not run backwards, however the slope changes, for any
// observer that sees the old reading through memory.
//
// An NMI on the changing CPU cannot wait. It reads by the old line, which is
// still current and complete, and marks the page disturbed. Then the
// compare-and-swap that would make the new timehands current fails, and the
// change is made again from a later moment. An NMI on another CPU waits like
// any reader.
//
// BUSY is also the lock of `master`. The order of loads and of stores is that
// of a sequence counter (lib/seqcount.h); the counter is read after its fence.
#include "kernel/time/timehands.h"

#include "arch/account.h"
#include "arch/cpu.h"
#include "arch/mmu.h"
#include "kernel/base/log.h"
#include "kernel/time/timecounter.h"
#include "lib/math64.h"

#define SHIFT_MAX 31
#define MULTIPLIER_MAX (1u << 31) // leaves room for rates of up to 2

// TIME_KERNEL until there is a counter, so that the TSC is not read: the CPU
// may have no LFENCE.
struct time_page time_page __attribute__((section(".data.page_aligned"))) = {
    .gen = { TIME_KERNEL },
};

_Static_assert(sizeof(struct time_page) == PAGE_SIZE,
               "programs see all of it: nothing else may be there");

// The counter behind each of the timehands. Changed with them.
static struct timecounter *counters[2];

// The clocks that the kernel reads, and the line of each.
enum clock {
    UPTIME = CLOCK_MONOTONIC,
    RAW = CLOCK_MONOTONIC_RAW,
    WALL = CLOCK_REALTIME
};

// The state that the lines are computed from. BUSY guards it.
static struct master {
    struct timecounter *tc;
    u64 count;
    u64 tick; // of tc, 2^-64 s
    s64 rate;
    struct bintime uptime, raw; // at `count`
    s64 wall_offset;
} master;

// --- reading ----------------------------------------------------------------

// The clock's nanoseconds, from the nanoseconds since the line began.
static ALWAYS_INLINE u64 add_base(u64 ns, const struct timehands *th,
                                  enum clock c)
{
    if (c == RAW)
        return account_plus(ns, &th->raw);
    ns = account_plus(ns, &th->uptime);
    return c == WALL ? account_plus(ns, (const u64 *)&th->wall_offset) : ns;
}

// Counts since the line began. The TSC of this CPU may be behind by the
// difference between CPUs: then 0.
static u64 counts_since(const struct time_line *line, u32 index)
{
    u64 count = READ_ONCE(line->count);
    struct timecounter *tc = READ_ONCE(counters[index]);
    if (!tc)
        return 0;
    u64 counts = (tc->read() - count) & READ_ONCE(tc->mask);
    return (s64)counts < 0 ? 0 : counts;
}

// Counts to nanoseconds, for any number of counts; time_since: below 2^32.
static u64 line_to_ns(const struct time_line *line, u64 counts)
{
    assert_checked(READ_ONCE(line->shift) < 32);
    u32 multiplier = READ_ONCE(line->multiplier);
    u32 shift = READ_ONCE(line->shift);
    u64 low = (u64)(u32)counts * multiplier;
    u64 high = (counts >> 32) * multiplier;
    return (high << (32 - shift)) + (low >> shift);
}

// An attempt of the slow path: a change is under way, the counter is not the
// TSC, or the line is old. Interrupts are off, so if this CPU makes a change,
// this is an NMI that has interrupted it.
static bool try_slowly(enum clock c, u64 *ns, u64 *counts)
{
    u32 gen = seqcount_peek(&time_page.gen);
    bool busy = gen & TIME_BUSY;
    if (busy) {
        if ((gen >> TIME_CPU_SHIFT & TIME_CPU_MASK) != this_cpu()->id)
            return false;
        WRITE_ONCE(time_page.gen.value, gen | TIME_DISTURBED);
    }
    const struct timehands *th = time_hands(&time_page, gen);
    *counts = counts_since(&th->lines[c], gen / TIME_INDEX & 1);
    *ns = add_base(line_to_ns(&th->lines[c], *counts), th, c);
    return busy || !seqcount_read_retry(&time_page.gen, gen);
}

static void refresh(void);

static NOINLINE u64 read_slowly(enum clock c)
{
    u64 ns, counts;
    u32 flags = irq_save();
    while (!try_slowly(c, &ns, &counts)) {
        irq_restore(flags);
        cpu_relax();
        flags = irq_save();
    }
    if (unlikely(counts >> 31))
        refresh();
    irq_restore(flags);
    return ns;
}

static ALWAYS_INLINE u64 read_clock(enum clock c)
{
    u32 gen = seqcount_peek(&time_page.gen);
    const struct timehands *th = time_hands(&time_page, gen);
    const struct time_line *line = time_line(th, c);
    u64 ns;
    if (unlikely(gen & (TIME_BUSY | TIME_KERNEL) || !time_since(line, &ns)))
        return read_slowly(c);
    th = container_of(line, const struct timehands, lines[c]);
    ns = add_base(ns, th, c);
    return seqcount_read_retry(&time_page.gen, gen) ? read_slowly(c) : ns;
}

u64 clock_now_ns(void)
{
    return read_clock(UPTIME);
}

u64 clock_raw_ns(void)
{
    return read_clock(RAW);
}

s64 clock_wall_ns(void)
{
    return (s64)read_clock(WALL);
}

s64 clock_wall_offset(void)
{
    u32 gen;
    s64 offset;
    do {
        gen = seqcount_peek(&time_page.gen);
        offset = READ_ONCE(time_hands(&time_page, gen)->wall_offset);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        // Busy or not: the current timehands do not change until `gen` does.
    } while ((seqcount_peek(&time_page.gen) ^ gen) >> TIME_GEN_SHIFT);
    return offset;
}

u32 clock_resolution_ns(void)
{
    u32 gen = seqcount_peek(&time_page.gen);
    return READ_ONCE(time_hands(&time_page, gen)->resolution);
}

// --- changing ---------------------------------------------------------------

// Interrupts are off. False: another change is under way.
static bool try_begin(u32 *gen)
{
    assert(!irqs_enabled());
    u32 old = seqcount_peek(&time_page.gen);
    *gen = old | TIME_BUSY | this_cpu()->id << TIME_CPU_SHIFT;
    if (old & TIME_BUSY ||
        !__atomic_compare_exchange_n(&time_page.gen.value, &old, *gen, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    __atomic_thread_fence(__ATOMIC_RELEASE); // the writes come after
    return true;
}

static u32 next_index(u32 gen)
{
    assert(gen & TIME_BUSY);
    return ~gen / TIME_INDEX & 1;
}

// False: an NMI has read the counter since try_begin; the change is repeated.
static bool publish(u32 gen, const struct timecounter *tc)
{
    assert(gen & TIME_BUSY);
    u32 next = ((gen >> TIME_GEN_SHIFT) + 1) << TIME_GEN_SHIFT;
    if (!(tc->flags & TIMECOUNTER_USER))
        next |= TIME_KERNEL;
    u32 expected = gen;
    if (__atomic_compare_exchange_n(&time_page.gen.value, &expected, next,
                                    false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        return true;
    // Clears DISTURBED. The NMI's reading precedes the next one.
    WRITE_ONCE(time_page.gen.value, gen);
    return false;
}

static u64 adjusted_tick(const struct master *m)
{
    u64 rate = (u64)(m->rate < 0 ? -m->rate : m->rate);
    u64 part = multiply_shift(m->tick, rate, TIME_RATE_SHIFT);
    return m->rate < 0 ? m->tick - part : m->tick + part;
}

// Advances the state to the current count.
static void advance(struct master *m)
{
    assert_checked(seqcount_peek(&time_page.gen) & TIME_BUSY);
    if (!m->tc)
        return;
    u64 count = m->tc->read();
    u64 counts = (count - m->count) & m->tc->mask;
    if ((s64)counts < 0)
        return; // the TSC of this CPU is behind
    m->raw = bintime_advance(m->raw, counts, m->tick);
    m->uptime = bintime_advance(m->uptime, counts, adjusted_tick(m));
    m->count = count;
}

static void use(struct master *m, struct timecounter *tc)
{
    assert_checked(seqcount_peek(&time_page.gen) & TIME_BUSY);
    m->tc = tc;
    m->tick = bintime_tick(tc->hz);
    m->count = tc->read();
}

static u32 multiplier(u64 tick, u32 shift)
{
    return (u32)MIN(multiply_shift(tick, NSEC_PER_SEC << shift, 64),
                    0xffffffffull);
}

static u32 best_shift(u64 tick)
{
    u32 shift = SHIFT_MAX;
    while (shift && multiplier(tick, shift) >= MULTIPLIER_MAX)
        shift--;
    return shift;
}

static void set_line(struct timehands *th, u32 clock, u64 count, u64 ns,
                     u32 multiplier, u32 shift)
{
    assert_checked(shift <= SHIFT_MAX &&
                   seqcount_peek(&time_page.gen) & TIME_BUSY);
    struct time_line *line = &th->lines[clock];
    u32 nsec;
    WRITE_ONCE(line->count, count);
    WRITE_ONCE(line->sec, divide_u64(ns, NSEC_PER_SEC, &nsec));
    WRITE_ONCE(line->nsec, nsec);
    WRITE_ONCE(line->multiplier, multiplier);
    WRITE_ONCE(line->shift, shift);
}

// Rounds everything down: a line is never ahead of the state.
static void set_lines(struct timehands *th, const struct master *m)
{
    assert_checked(m->tc); // set by the first change
    u32 shift = best_shift(m->tick), raw = multiplier(m->tick, shift);
    u32 adjusted = multiplier(adjusted_tick(m), shift);
    u64 uptime = (u64)bintime_to_ns(m->uptime);
    u64 raw_time = (u64)bintime_to_ns(m->raw);
    u64 wall = uptime + (u64)m->wall_offset;
    u64 resolution = DIV_ROUND_UP(NSEC_PER_SEC, m->tc->hz);
    WRITE_ONCE(th->uptime, uptime);
    WRITE_ONCE(th->raw, raw_time);
    WRITE_ONCE(th->wall_offset, m->wall_offset);
    WRITE_ONCE(th->resolution, (u32)resolution);
    set_line(th, CLOCK_REALTIME, m->count, wall, adjusted, shift);
    set_line(th, CLOCK_REALTIME_COARSE, m->count, wall, adjusted, shift);
    set_line(th, CLOCK_MONOTONIC, m->count, uptime, adjusted, shift);
    set_line(th, CLOCK_MONOTONIC_COARSE, m->count, uptime, adjusted, shift);
    set_line(th, CLOCK_BOOTTIME, m->count, uptime, adjusted, shift);
    set_line(th, CLOCK_MONOTONIC_RAW, m->count, raw_time, raw, shift);
    u64 invalid_count = m->count + TIME_INVALID;
    WRITE_ONCE(th->lines[CLOCK_PROCESS_CPUTIME_ID].count, invalid_count);
    WRITE_ONCE(th->lines[CLOCK_THREAD_CPUTIME_ID].count, invalid_count);
}

struct change {
    struct timecounter *use; // NULL: unchanged
    bool set_rate, set_wall;
    s64 rate, wall;
};

static void apply(struct master *m, const struct change *c)
{
    if (c->use)
        use(m, c->use);
    if (c->set_rate)
        m->rate = c->rate;
    if (c->set_wall)
        m->wall_offset = c->wall - bintime_to_ns(m->uptime);
}

// Makes the change and makes the new timehands current. From try_begin to its
// return no code here may read a clock. *m: the new state.
static void finish(u32 gen, const struct change *c, struct master *m)
{
    assert(gen & TIME_BUSY);
    const struct master before = master;
    u32 index = next_index(gen);
    do {
        *m = before;
        advance(m);
        apply(m, c);
        set_lines(&time_page.hands[index], m);
        WRITE_ONCE(counters[index], m->tc);
        master = *m; // for the next change
    } while (!publish(gen, m->tc));
}

static struct master change(const struct change *c)
{
    struct master m;
    u32 gen, flags = irq_save();
    while (!try_begin(&gen))
        cpu_relax();
    finish(gen, c, &m);
    irq_restore(flags);
    return m;
}

// Only brings the line up to date; if another change is under way, that does
// it. So this is NMI-safe.
static void refresh(void)
{
    static const struct change nothing;
    struct master m;
    u32 gen;
    if (try_begin(&gen))
        finish(gen, &nothing, &m);
}

void timehands_refresh(void)
{
    u32 flags = irq_save();
    refresh();
    irq_restore(flags);
}

void timehands_use(struct timecounter *tc)
{
    assert(tc->hz >= 2 && tc->read);
    change(&(struct change){ .use = tc });
}

void timehands_set_rate(s64 rate, struct bintime *uptime, struct bintime *raw)
{
    assert(rate < 1ll << (TIME_RATE_SHIFT - 3) &&
           rate > -(1ll << (TIME_RATE_SHIFT - 3)));
    struct master m =
        change(&(struct change){ .set_rate = true, .rate = rate });
    *uptime = m.uptime;
    *raw = m.raw;
}

void timehands_set_wall(s64 wall)
{
    change(&(struct change){ .set_wall = true, .wall = wall });
}
