// The self-test of the sample sources: it tells sources that interrupt every
// CPU from one that never interrupts, and from one that reaches the boot CPU
// only.
#include "tests/kernel/test.h"
#include "kernel/profile/sample.h"
#include "kernel/stream/stream.h"
#include "kernel/time/timer.h"
#include "lib/string.h"

#define UNUSED_VECTOR 0xdfu

static struct timer *reserved;
static u32 starts, stops;

static const char *usable(const struct sample_source *s UNUSED)
{
    return NULL;
}

static int start_nothing(const struct sample_source *s UNUSED,
                         struct sample_rate *rate)
{
    expect(rate->hz > 0);
    starts++;
    return 0;
}

static void stop_nothing(const struct sample_source *s UNUSED)
{
    stops++;
}

static u32 unused_vector(const struct sample_source *s UNUSED)
{
    return UNUSED_VECTOR;
}

static const struct sample_source silent = {
    .name = "silent",
    .max_hz = 8192,
    .nmi = true,
    .why_not = usable,
    .vector = unused_vector,
    .start = start_nothing,
    .stop = stop_nothing,
};

static void ignore(void *arg UNUSED, const struct trapframe *tf UNUSED)
{
}

static int start_on_boot_cpu(const struct sample_source *s UNUSED,
                             struct sample_rate *rate)
{
    starts++;
    return timer_start(reserved, TIMER_PERIODIC, NSEC_PER_SEC / rate->hz,
                       ignore, NULL);
}

static void stop_on_boot_cpu(const struct sample_source *s UNUSED)
{
    stops++;
    timer_stop(reserved);
}

static u32 timer_vector(const struct sample_source *s UNUSED)
{
    return reserved->vector;
}

static const struct sample_source partial = {
    .name = "partial",
    .max_hz = 1000,
    .why_not = usable,
    .vector = timer_vector,
    .start = start_on_boot_cpu,
    .stop = stop_on_boot_cpu,
};

static const char *tested(const struct sample_source *s)
{
    starts = stops = 0;
    mutex_lock(&streams_lock);
    const char *why = source_test(s);
    mutex_unlock(&streams_lock);
    return why;
}

KERNEL_TEST(source_test_finds_a_silent_source)
{
    const char *why = tested(&silent);
    expect(why && !strcmp(why, "its interrupts do not arrive (self-test)"));
    expect(starts == 1 && stops == 1);
}

KERNEL_TEST(source_test_finds_a_source_of_one_cpu)
{
    if (timer_reserve(TIMER_PERIODIC, NSEC_PER_MSEC, NSEC_PER_MSEC, "a test",
                      &reserved)) {
        test_skip("no timer is free");
        return;
    }
    const char *why = tested(&partial);
    if (cpu_count == 1 || reserved->flags & TIMER_PER_CPU)
        expect(!why);
    else
        expect(why && strstr(why, "do not reach all CPUs"));
    expect(starts == 1 && stops == 1);
    timer_release(reserved);
}

// All that are offered have passed it, and pass it again.
KERNEL_TEST(source_test_is_passed_by_what_is_offered)
{
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        if (!source_why_not(*s))
            expect(!tested(*s));
    }
}
