// system.clock.readings: each counter beside the TSC, from which a reader gets
// the rates against each other by asking twice.
#include "arch/cpu.h"
#include "kernel/base/providers.h"
#include "kernel/time/timecounter.h"
#include "lib/string.h"

#define READS 8u // of which the shortest is taken: the others were disturbed

// A counter with a `start` counts only while it is the kernel's clock.
static bool counts(const struct timecounter *tc)
{
    return !READ_ONCE(tc->why_not) &&
           (!tc->start || tc == timecounter_in_use());
}

static void read_shortest(const struct timecounter *tc,
                          struct sysinfo_reading *r)
{
    for (u32 i = 0; i < READS; i++) {
        u32 flags = irq_save();
        u64 before = rdtsc();
        u64 value = tc->read() & tc->mask;
        u64 after = rdtsc();
        irq_restore(flags);
        if (i && after - before >= r->after - r->before)
            continue;
        r->value = value;
        r->before = before;
        r->after = after;
    }
}

void clock_readings_each(void (*fn)(const struct sysinfo_reading *, void *),
                         void *arg)
{
    FOR_EACH_TIMECOUNTER(tc)
    {
        if (!counts(*tc))
            continue;
        struct sysinfo_reading r = { .mask = (*tc)->mask,
                                     .frequency = (*tc)->hz };
        strlcpy(r.name, (*tc)->name, sizeof(r.name));
        read_shortest(*tc, &r);
        fn(&r, arg);
    }
}
