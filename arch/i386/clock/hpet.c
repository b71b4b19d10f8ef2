// The HPET (IA-PC HPET specification 1.0a): its discovery, and its main counter
// as a timecounter. Its comparators are in hpet_timer.c.
#include "arch/i386/clock/hpet.h"
#include "arch/i386/acpi/acpi.h"
#include "arch/i386/clock/clock_private.h"
#include "kernel/time/timecounter.h"

#define HPET_SIZE 0x400

#define FEMTOSECONDS 1000000000000000ull // per second
#define PERIOD_MAX 100000000u            // 2.3.4: at least 10 MHz
#define PERIOD_MIN 100000u               // faster than any known one
#define READS_MAX 100000u // limit, for a counter that does not count

volatile u32 *hpet_registers;
static u32 hz;
static const char *problem;

u32 hpet_hz(void)
{
    return hz;
}

static const char *find(void)
{
    if (!acpi_info.hpet)
        return "the firmware names none";
    hpet_registers = map_device(acpi_info.hpet, HPET_SIZE);
    if (!hpet_registers)
        return "it cannot be mapped";
    u32 period = hpet_read(HPET_PERIOD);
    if (period < PERIOD_MIN || period > PERIOD_MAX)
        return "it claims an impossible rate";
    u32 config = hpet_read(HPET_CONFIG) & ~HPET_LEGACY_ROUTE;
    hpet_write(HPET_CONFIG, config | HPET_ENABLE);
    u32 start = hpet_read(HPET_COUNTER), now = start;
    for (u32 i = 0; i < READS_MAX && now == start; i++)
        now = hpet_read(HPET_COUNTER);
    if (now == start)
        return "it does not count";
    hz = (u32)((FEMTOSECONDS + period / 2) / period);
    return NULL;
}

const char *hpet_find(void)
{
    static bool searched;
    if (!searched)
        problem = find();
    searched = true;
    return problem;
}

// Only the low 32 bits: any machine reads these in one access.
static u64 hpet_clock_read(void)
{
    return hpet_read(HPET_COUNTER);
}

static const char *hpet_clock_probe(struct timecounter *tc)
{
    const char *why_not = hpet_find();
    tc->hz = hz;
    return why_not;
}

static struct timecounter hpet_clock = {
    .name = "hpet",
    .rank = RANK_HPET,
    .mask = ~0u,
    .read = hpet_clock_read,
    .probe = hpet_clock_probe,
};
TIMECOUNTER(hpet_clock);
