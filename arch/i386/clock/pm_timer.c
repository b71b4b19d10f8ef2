// The ACPI power management timer (ACPI 6.4, 4.8.3.3), as a reference.
#include "arch/i386/acpi/acpi.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/dev/port.h"

#define PM_TIMER_HZ 3579545u
#define PM_TIMER_MASK 0xffffffu // 24 bits count everywhere, 32 on some

static u32 pm_timer_read(void)
{
    return in32(acpi_facts.pm_timer_port);
}

static const struct reference pm_timer = {
    .name = "ACPI PM timer",
    .hz = PM_TIMER_HZ,
    .mask = PM_TIMER_MASK,
    .read = pm_timer_read,
};

const struct reference *pm_timer_reference(void)
{
    return acpi_facts.pm_timer_port ? &pm_timer : NULL;
}
