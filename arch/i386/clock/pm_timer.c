// The ACPI power management timer (ACPI 6.4, 4.8.3.3) as a timecounter.
//
// Some chipsets' counters may be read in the middle of a carry. So it is read
// three times, until the three values are in order.
#include "arch/cpu.h"
#include "arch/i386/acpi/fadt.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/dev/port.h"
#include "kernel/time/timecounter.h"

#define PM_TIMER_HZ 3579545u
#define PM_TIMER_MASK 0xffffffu // all have 24 bits, some 32
#define LOOKS 1000u
#define READS 10u

static u32 read_counter(void)
{
    const struct acpi_register *r = &power_registers.timer;
    u32 now = r->memory ? *(volatile u32 *)r->memory : in32((u16)r->address);
    return now & PM_TIMER_MASK;
}

static bool in_order(u32 a, u32 b)
{
    return ((b - a) & PM_TIMER_MASK) < PM_TIMER_MASK / 2;
}

// Used where the probe has found readings out of order.
static u64 read_carefully(void)
{
    u32 a = read_counter(), b = read_counter(), c = read_counter();
    for (u32 i = 0; i < READS && !(in_order(a, b) && in_order(b, c)); i++) {
        a = b;
        b = c;
        c = read_counter();
    }
    return b;
}

static u64 read_once(void)
{
    return read_counter();
}

static const char *pm_timer_probe(struct timecounter *tc)
{
    if (!power_registers.timer.bytes)
        return "the firmware names none";
    u32 first = read_counter(), last = first;
    bool moved = false;
    tc->read = read_once;
    for (u32 i = 0; i < LOOKS; i++) {
        u32 now = read_counter();
        if (!in_order(last, now))
            tc->read = read_carefully;
        moved |= now != first;
        last = now;
    }
    return moved ? NULL : "it does not count";
}

static struct timecounter pm_timer = {
    .name = "acpi_pm",
    .rank = RANK_PM_TIMER,
    .hz = PM_TIMER_HZ,
    .mask = PM_TIMER_MASK,
    .read = read_carefully,
    .probe = pm_timer_probe,
};
TIMECOUNTER(pm_timer);
