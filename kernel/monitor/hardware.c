// hardware.*: what the machine consists of and how it is set up, as text for a
// report (user/hwreport). Read from the hardware at each read; root only, since
// it shows physical addresses.

#include "kernel/base/providers.h"
#include "kernel/monitor/sysinfo.h"

#include <arch/boot.h>

static int make_memory(struct chain *out, u32 number UNUSED)
{
    for (u32 i = 0; i < boot_info.region_count; i++) {
        const struct boot_region *r = &boot_info.regions[i];
        chain_printf(out, "%012llx-%012llx %10llu KiB  %s\n", r->base,
                     r->base + r->size - 1, r->size >> 10,
                     r->usable ? "usable" : "reserved");
    }
    return 0;
}

static int make_acpi(struct chain *out, u32 number UNUSED)
{
    acpi_report(out);
    return 0;
}

static int make_interrupts(struct chain *out, u32 number UNUSED)
{
    interrupts_report(out);
    return 0;
}

static int make_msrs(struct chain *out, u32 number UNUSED)
{
    msrs_report(out);
    return 0;
}

static int make_mtrrs(struct chain *out, u32 number UNUSED)
{
    mtrrs_report(out);
    return 0;
}

static int make_pci(struct chain *out, u32 number UNUSED)
{
    pci_report(out);
    return 0;
}

#define HARDWARE_NODE(id)                                           \
    SYSINFO_NODE(hardware_##id, .path = "hardware." #id,            \
                 .type = SYSINFO_TYPE(SYSINFO_TEXT, SYSINFO_COUNT), \
                 .make = make_##id, .restricted = true)

HARDWARE_NODE(acpi);
HARDWARE_NODE(interrupts);
HARDWARE_NODE(memory);
HARDWARE_NODE(msrs);
HARDWARE_NODE(mtrrs);
HARDWARE_NODE(pci);
