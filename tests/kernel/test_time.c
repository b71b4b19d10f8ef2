// On no CPU does time run backwards or jump, whatever is set or changed.

#include "arch/cpu.h"
#include "kernel/base/errno.h"
#include "kernel/task/task.h"
#include "kernel/time/timecounter.h"
#include "kernel/time/timehands.h"
#include "kernel/time/timer.h"
#include "kernel/time/wallclock.h"
#include "lib/string.h"
#include "tests/kernel/test.h"

#define PPM(n) ((n) * ((1ll << TIME_RATE_SHIFT) / 1000000))

static void set_rate(s64 rate)
{
    struct bintime uptime, raw;
    timehands_set_rate(rate, &uptime, &raw);
}

static struct timecounter *usable(u32 number)
{
    FOR_EACH_TIMECOUNTER(tc)
    {
        if (!(*tc)->why_not && number-- == 0)
            return *tc;
    }
    return NULL;
}

static u32 usable_count(void)
{
    u32 n = 0;
    while (usable(n))
        n++;
    return n;
}

// --- readers on all CPUs, and a thread that changes the clock ---------------
//
// `latest`, guarded by its lock, is the newest uptime that any reader got. A
// reader that takes `latest` and then reads the clock must not get less.

#define READS 3000

static struct spinlock latest_lock = SPINLOCK_INIT("test latest");
static u64 latest;
static u32 readers;
static struct waitq readers_done = WAITQ_INIT(readers_done, "test readers");

// Updates `latest` with `now` and returns it.
static u64 tell(u64 now)
{
    u32 flags = spin_lock_irq(&latest_lock);
    u64 newest = latest = MAX(latest, now);
    spin_unlock_irq(&latest_lock, flags);
    return newest;
}

static void read_often(void *arg UNUSED)
{
    u64 last = 0, last_raw = 0;
    for (u32 i = 0; i < READS; i++) {
        u64 newest = tell(last);
        u64 now = clock_now_ns(), raw = clock_raw_ns();
        expect(now >= newest);
        expect(raw >= last_raw);
        last = now;
        last_raw = raw;
        if (i % 100 == 0)
            sched_yield();
    }
    __atomic_sub_fetch(&readers, 1, __ATOMIC_SEQ_CST);
    waitq_wake_all(&readers_done);
}

static void start_readers(void)
{
    readers = cpu_count * 2;
    latest = clock_now_ns();
    for (u32 i = 0; i < cpu_count * 2; i++)
        expect(!kthread_create("reader", read_often, NULL, NULL));
}

static void wait_for_readers(void)
{
    wait_event(&readers_done, !READ_ONCE(readers), WAIT_UNINTERRUPTIBLE,
               WAIT_FOREVER);
}

static void change_something(u32 counters)
{
    u32 r = test_random();
    switch (r % 4) {
    case 0:
        set_rate(PPM((s32)(r / 4 % 200000) - 100000));
        break;
    case 1:
        timehands_set_wall((s64)(r / 4) * (s64)NSEC_PER_SEC);
        break;
    case 2:
        timehands_refresh();
        break;
    case 3:
        if (counters)
            expect(!timecounter_use(usable(r / 4 % counters)));
    }
}

static void stress(u32 counters)
{
    struct timecounter *before = timecounter_in_use();
    s64 offset = wallclock_boot_ns();
    start_readers();
    while (READ_ONCE(readers)) {
        change_something(counters);
        sched_yield();
    }
    wait_for_readers();
    expect(!timecounter_use(before));
    set_rate(0);
    timehands_set_wall(offset + (s64)clock_now_ns());
}

KERNEL_TEST(time_never_runs_backwards)
{
    stress(0);
}

KERNEL_TEST(time_never_runs_backwards_over_counters)
{
    stress(usable_count());
}

// --- in an NMI, also in the middle of a change ------------------------------

#define NMI_PERIOD (200 * NSEC_PER_USEC)
#define NMI_HITS 10u // NMIs wanted within a change, and as many outside of one

// The newest times that a CPU read, in NMIs and outside of them.
static struct {
    u64 in_nmi, outside;
    bool telling; // `outside` is being written
    u32 hits, nmis, backwards;
} __attribute__((aligned(64))) record[CPU_MAX];

static void read_in_nmi(void *arg UNUSED, const struct trapframe *tf UNUSED)
{
    __typeof__(&record[0]) t = &record[this_cpu()->id];
    if (seqcount_peek(&time_page.gen) & TIME_BUSY)
        ADD_ONCE(t->hits, 1);
    u64 now = clock_now_ns();
    if (now < READ_ONCE(t->in_nmi) ||
        (!READ_ONCE(t->telling) && now < READ_ONCE(t->outside)))
        ADD_ONCE(t->backwards, 1);
    WRITE_ONCE(t->in_nmi, now);
    ADD_ONCE(t->nmis, 1);
}

// The time that this CPU's last NMI read. Retries if an NMI comes between the
// reads of the two halves.
static u64 time_of_last_nmi(const __typeof__(record[0]) *t)
{
    u32 nmis;
    u64 in_nmi;
    do {
        nmis = READ_ONCE(t->nmis);
        in_nmi = READ_ONCE(t->in_nmi);
    } while (READ_ONCE(t->nmis) != nmis);
    return in_nmi;
}

// Changes the rate from one extreme to the other. An NMI within the change must
// not read a later time than this thread reads after it.
static void change_and_read(s64 rate)
{
    u32 flags = irq_save();
    __typeof__(&record[0]) t = &record[this_cpu()->id];
    set_rate(rate);
    u64 in_nmi = time_of_last_nmi(t), now = clock_now_ns();
    if (now < in_nmi)
        ADD_ONCE(t->backwards, 1);
    WRITE_ONCE(t->telling, true);
    WRITE_ONCE(t->outside, now);
    WRITE_ONCE(t->telling, false);
    irq_restore(flags);
}

static u32 record_sum(size_t field)
{
    u32 sum = 0;
    for (u32 i = 0; i < cpu_count; i++)
        sum += READ_ONCE(*(u32 *)((char *)&record[i] + field));
    return sum;
}
#define RECORDED(field) record_sum(offsetof(__typeof__(record[0]), field))

KERNEL_TEST(time_is_read_in_nmis)
{
    struct timer *t;
    memset(record, 0, sizeof(record));
    if (timer_reserve(TIMER_PERIODIC | TIMER_NMI, NMI_PERIOD, NMI_PERIOD,
                      "a test", &t)) {
        test_skip("no timer sends NMIs, or it is in use");
        return;
    }
    expect(!timer_start(t, TIMER_PERIODIC | TIMER_NMI, NMI_PERIOD, read_in_nmi,
                        NULL));
    u64 limit = clock_now_ns() + TEST_PATIENCE;
    while ((RECORDED(hits) < NMI_HITS ||
            RECORDED(nmis) < RECORDED(hits) + NMI_HITS) &&
           clock_now_ns() < limit) {
        change_and_read(PPM(100000));
        change_and_read(PPM(-100000));
    }
    timer_release(t);
    set_rate(0);
    expect(RECORDED(hits) > 0 && RECORDED(nmis) > RECORDED(hits));
    expect(RECORDED(backwards) == 0);
}

// --- rates and offsets ------------------------------------------------------

static void check_rate(s64 ppm)
{
    struct bintime uptime[2], raw[2];
    timehands_set_rate(PPM(ppm), &uptime[0], &raw[0]);
    u64 end = clock_raw_ns() + 5 * NSEC_PER_MSEC;
    while (clock_raw_ns() < end)
        cpu_relax();
    timehands_set_rate(0, &uptime[1], &raw[1]);
    s64 by_raw = bintime_to_ns(bintime_sub(raw[1], raw[0]));
    s64 by_uptime = bintime_to_ns(bintime_sub(uptime[1], uptime[0]));
    s64 error = by_uptime - by_raw - by_raw * ppm / 1000000;
    s64 allowed = by_raw / 1000000 + 10;
    expect(error <= allowed && error >= -allowed);
}

KERNEL_TEST(time_runs_at_the_rate_that_is_set)
{
    check_rate(0);
    check_rate(500);
    check_rate(-500);
    check_rate(100000);
    check_rate(-100000);
}

// The line that converts TSC to time is used for 2^32 counts and then
// recomputed. The distance of two readings is that of the TSC before, within
// and after these counts.
KERNEL_TEST(time_is_read_by_an_old_line)
{
    if (strcmp(timecounter_in_use()->name, "tsc")) {
        test_skip("the TSC does not tell the time");
        return;
    }
    timehands_refresh();
    u64 before = rdtsc(), began = clock_raw_ns(), after = rdtsc();
    for (u64 age = 0; age <= 5ull << 30; age += 1 << 29) {
        while (rdtsc() - before < age)
            thread_sleep_until(clock_now_ns() + NSEC_PER_MSEC,
                               WAIT_UNINTERRUPTIBLE);
        u64 least = rdtsc() - after;
        u64 elapsed = clock_raw_ns() - began;
        u64 most = rdtsc() - before;
        expect(elapsed + 100 >= clock_tsc_to_ns(least));
        expect(elapsed <= clock_tsc_to_ns(most) + 100);
    }
}

KERNEL_TEST(time_wall_clock_is_set_exactly)
{
    static const s64 days[] = {
        0,          1,          0x7fffffff,  0x80000000,
        0x83aa7e80, 0xffffffff, 0x100000000, 9000000000
    };
    s64 offset = wallclock_boot_ns();
    for (u32 i = 0; i < ARRAY_SIZE(days); i++) {
        s64 wall = days[i] * (s64)NSEC_PER_SEC + (s64)(test_random() % 1000);
        u64 before = clock_now_ns();
        timehands_set_wall(wall);
        s64 now = clock_wall_ns();
        expect(now >= wall && now - wall <= (s64)(clock_now_ns() - before));
        s64 set = clock_wall_offset();
        expect(set <= wall - (s64)before);
    }
    timehands_set_wall(offset + (s64)clock_now_ns());
    expect(wallclock_set_ns(-1) == -EINVAL);
    expect(wallclock_set_ns(INT64_MAX) == -EINVAL);
    expect(wallclock_set_ns(0) == -EINVAL); // before the boot
}

// --- counters ---------------------------------------------------------------

#define JUMP_MAX (50 * NSEC_PER_USEC)

// The difference between the advance of the clock and that of the TSC while the
// counter is changed: the first good result of many attempts, or else the best,
// as the host may stop the CPU in between.
static u64 jump(struct timecounter *from, struct timecounter *to)
{
    u64 best = ~0ull;
    for (u32 i = 0; i < 1000 && best >= JUMP_MAX; i++) {
        expect(!timecounter_use(from));
        u32 flags = irq_save();
        u64 now = clock_now_ns(), ticks = rdtsc();
        expect(!timecounter_use(to));
        u64 elapsed = clock_now_ns() - now;
        u64 by_tsc = clock_tsc_to_ns(rdtsc() - ticks);
        irq_restore(flags);
        u64 off = elapsed > by_tsc ? elapsed - by_tsc : by_tsc - elapsed;
        best = MIN(best, off);
    }
    return best;
}

KERNEL_TEST(time_does_not_jump_when_the_counter_changes)
{
    struct timecounter *before = timecounter_in_use();
    u32 n = usable_count();
    expect(n > 0);
    for (u32 i = 0; i < n * n; i++) {
        struct timecounter *tc = usable(i % 2 ? i / 2 % n : 0);
        expect(jump(timecounter_in_use(), tc) < JUMP_MAX);
        expect(timecounter_in_use() == tc);
    }
    expect(!timecounter_use(before));
}

KERNEL_TEST(time_goes_on_when_a_counter_is_demoted)
{
    struct timecounter *tc = timecounter_in_use();
    if (usable_count() < 2) {
        test_skip("one timecounter alone");
        return;
    }
    u64 before = clock_now_ns();
    timecounter_demote(tc, "a test");
    expect(timecounter_in_use() != tc && !timecounter_in_use()->why_not);
    expect(timecounter_use(tc) == -EINVAL);
    expect(clock_now_ns() >= before);
    tc->why_not = NULL;
    expect(!timecounter_use(tc));
}

KERNEL_TEST(time_drift_differs_from_wrapping)
{
    struct timecounter tsc = { .hz = 2300000000, .mask = ~0ull };
    struct timecounter pm = { .hz = 3579545, .mask = 0xffffff };
    for (u32 seconds = 1; seconds < 100; seconds++) {
        u64 counted = tsc.hz * seconds, ticks = pm.hz * seconds;
        expect(!timecounter_drifted(&tsc, &pm, counted, ticks, 0));
        expect(!timecounter_drifted(&tsc, &pm, counted, ticks & pm.mask, 0));
        u64 ahead = ticks + ticks / 800, behind = ticks - ticks / 800;
        expect(timecounter_drifted(&tsc, &pm, counted, ahead & pm.mask, 0));
        expect(timecounter_drifted(&tsc, &pm, counted, behind & pm.mask, 0));
        expect(!timecounter_drifted(&tsc, &pm, counted, behind & pm.mask,
                                    counted / 800));
        u64 little = ticks + ticks / 1200;
        expect(!timecounter_drifted(&tsc, &pm, counted, little & pm.mask, 0));
    }
}
