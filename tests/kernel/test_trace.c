// Trace points: their listeners hear each event, on all CPUs, and only while
// they listen.
#include "kernel/base/providers.h"
#include "kernel/sync/mutex.h"
#include "kernel/time/callout.h"
#include "kernel/trace/point.h"
#include "lib/string.h"
#include "tests/kernel/point_helpers.h"

#define SLEEPS 20u

static u32 switches, wakes, fires, contentions; // atomic
static u32 other_switches;

#define COUNT(counter) __atomic_add_fetch(&(counter), 1, __ATOMIC_RELAXED)

static void on_switch(const void *record)
{
    const struct trace_sched_switch *r = record;
    expect(!irqs_enabled() && r->next == current->tid);
    COUNT(switches);
}

static void on_other_switch(const void *record UNUSED)
{
    COUNT(other_switches);
}

static void on_wake(const void *record)
{
    const struct trace_sched_wake *r = record;
    expect(r->cpu < cpu_count);
    COUNT(wakes);
}

static void on_fire(const void *record UNUSED)
{
    COUNT(fires);
}

static void on_contention(const void *record)
{
    const struct trace_lock_contended *r = record;
    expect(r->lock && r->caller && r->cycles);
    COUNT(contentions);
}

static struct trace_listener listeners[] = {
    { .point = TRACE_sched_switch, .fn = on_switch },
    { .point = TRACE_sched_switch, .fn = on_other_switch },
    { .point = TRACE_sched_wake, .fn = on_wake },
    { .point = TRACE_timer_fire, .fn = on_fire },
    { .point = TRACE_lock_contended, .fn = on_contention },
};

static struct mutex contended = MUTEX_INIT(contended, "a test's");

static void sleep_often(void *arg UNUSED)
{
    for (u32 i = 0; i < SLEEPS; i++) {
        mutex_lock(&contended);
        sleep_ms(1); // the others wait for it
        mutex_unlock(&contended);
    }
    report_done();
}

static void run_sleepers(u32 count)
{
    reset();
    for (u32 i = 0; i < count; i++)
        start(sleep_often, NULL);
    wait_for(count);
}

static struct sysinfo_text text_now(void)
{
    struct sysinfo_text t;
    text_report(&t);
    return t;
}

// Of a point that no listener uses: it stays on for a second (LINGER_NS).
#define PAUSE_MAX_NS (NSEC_PER_SEC / 2)
#define LINGER_TRIES 20u

// Switches a point on and off many times, and then on. The longest time for
// which it was off.
static u64 switch_often(void)
{
    u64 longest = 0;
    trace_listen(&listeners[0]);
    for (u32 i = 0; i < 50; i++) {
        u64 off = clock_now_ns();
        trace_unlisten(&listeners[0]);
        trace_listen(&listeners[0]);
        longest = MAX(longest, clock_now_ns() - off);
    }
    return longest;
}

// The state before switch_often; again if the host stood still in it. False: it
// always did.
static bool switch_often_from(struct sysinfo_text *before)
{
    for (u32 i = 0; i < LINGER_TRIES; i++) {
        points_settle();
        *before = text_now();
        if (switch_often() <= PAUSE_MAX_NS)
            return true;
        trace_unlisten(&listeners[0]);
    }
    return false;
}

// Patching stops all CPUs: one that is switched on and off again and again is
// patched once, and once more a second after the last time.
KERNEL_TEST(trace_point_lingers)
{
    struct sysinfo_text before, now;
    if (!switch_often_from(&before)) {
        test_skip("the host stood still");
        return;
    }
    now = text_now();
    expect(now.patches == before.patches + 1);
    expect(now.patched > before.patched);
    sleep_ms(1100);
    expect(text_now().patches == before.patches + 1);
    trace_unlisten(&listeners[0]);
    points_settle();
    now = text_now();
    expect(now.patches == before.patches + 2);
    expect(now.patched == before.patched);
}

KERNEL_TEST(trace_points_are_heard)
{
    switches = other_switches = wakes = fires = contentions = 0;
    for (u32 i = 0; i < ARRAY_SIZE(listeners); i++)
        trace_listen(&listeners[i]);
    run_sleepers(3);
    expect(switches >= 3 * SLEEPS && wakes >= 3 * SLEEPS);
    expect(fires >= 3 * SLEEPS && contentions >= 2);
    // Two users of one listener: it listens until the second has gone.
    trace_listen(&listeners[1]);
    trace_unlisten(&listeners[1]);
    for (u32 i = 0; i < ARRAY_SIZE(listeners); i++) {
        if (i != 1)
            trace_unlisten(&listeners[i]);
    }
    u32 heard = switches, others = other_switches;
    run_sleepers(1);
    expect(switches == heard && other_switches >= others + SLEEPS);
    trace_unlisten(&listeners[1]);
    heard = other_switches;
    run_sleepers(1);
    expect(other_switches == heard);
}
