// The HPET's main counter (IA-PC HPET specification 1.0a), as a reference.
#include "arch/i386/acpi/acpi.h"
#include "arch/i386/clock/clock_private.h"

#define HPET_SIZE 0x400
enum { HPET_CAPABILITIES_HIGH = 0x04, HPET_CONFIG = 0x10, HPET_COUNTER = 0xf0 };

#define CONFIG_ENABLE 1u
#define CONFIG_LEGACY_ROUTE 2u // takes the PIT's and the RTC's interrupt lines

#define FEMTOSECONDS 1000000000000000ull // per second
#define PERIOD_MAX 100000000u            // 2.3.4: at least 10 MHz
#define PERIOD_MIN 100000u               // faster than any

static volatile u32 *registers;

static u32 hpet_read(void)
{
    return registers[HPET_COUNTER / 4];
}

static struct reference hpet = {
    .name = "HPET",
    .mask = ~0u,
    .read = hpet_read,
};

const struct reference *hpet_reference(void)
{
    if (!acpi_facts.hpet)
        return NULL;
    registers = map_device(acpi_facts.hpet, HPET_SIZE);
    if (!registers)
        return NULL;
    u32 period = registers[HPET_CAPABILITIES_HIGH / 4];
    if (period < PERIOD_MIN || period > PERIOD_MAX)
        return NULL;
    u32 config = registers[HPET_CONFIG / 4] & ~CONFIG_LEGACY_ROUTE;
    registers[HPET_CONFIG / 4] = config | CONFIG_ENABLE;
    hpet.hz = (u32)((FEMTOSECONDS + period / 2) / period);
    return &hpet;
}
