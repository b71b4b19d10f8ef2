// The watch of the event timer, where another user has the timer that it wants.
#include "kernel/time/eventwatch.h"

#include "arch/clock.h"
#include "kernel/base/errno.h"
#include "tests/kernel/test.h"

#define PERIOD (2 * NSEC_PER_MSEC)
#define CALLS 5u

static u32 calls, intrusions;

static void count(void *arg UNUSED, const struct trapframe *tf UNUSED)
{
    ADD_ONCE(calls, 1);
}

static void intrude(void *arg UNUSED, const struct trapframe *tf UNUSED)
{
    ADD_ONCE(intrusions, 1);
}

// What the watch could take for itself: then it joins the first that starts.
static u32 reserve_all(struct timer **got, u32 size)
{
    u32 n = 0;
    while (n < size && (!timer_reserve_name("hpet", "a test", &got[n]) ||
                        !timer_reserve_name("rtc", "a test", &got[n])))
        n++;
    return n;
}

KERNEL_TEST(watch_keeps_what_it_joined)
{
    struct timer *got[16];
    u32 n = reserve_all(got, ARRAY_SIZE(got));
    if (!n) {
        test_skip("the watch has no timer");
        return;
    }
    calls = intrusions = 0;
    expect(timer_start(got[0], TIMER_PERIODIC, PERIOD, count, NULL) == 0);
    expect(got[0]->fn != count); // the watch's checks go with it
    expect(timer_start(got[0], TIMER_PERIODIC, PERIOD, intrude, NULL) ==
           -EBUSY);
    u32 before = READ_ONCE(calls);
    u64 limit = clock_now_ns() + TEST_PATIENCE;
    while (READ_ONCE(calls) < before + CALLS && clock_now_ns() < limit)
        test_relax();
    expect(READ_ONCE(calls) >= before + CALLS && !READ_ONCE(intrusions));
    while (n)
        timer_release(got[--n]);
}
