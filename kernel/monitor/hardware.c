// hardware.*: what the machine consists of and how it is set up, as text for a
// report (user/hwreport). Read from the hardware at each read; root only, since
// it shows physical addresses.

#include "kernel/base/providers.h"
#include "kernel/monitor/sysinfo.h"

#include <arch/boot.h>

static void memory_report(struct chain *out)
{
    for (u32 i = 0; i < boot_info.region_count; i++) {
        const struct boot_region *r = &boot_info.regions[i];
        chain_printf(out, "%012llx-%012llx %10llu KiB  %s\n", r->base,
                     r->base + r->size - 1, r->size >> 10,
                     r->usable ? "usable" : "reserved");
    }
}

#define HARDWARE_NODE(id, report)                                   \
    static int make_##id(struct chain *out, u32 number UNUSED)      \
    {                                                               \
        report(out);                                                \
        return 0;                                                   \
    }                                                               \
    SYSINFO_NODE(hardware_##id, .path = "hardware." #id,            \
                 .type = SYSINFO_TYPE(SYSINFO_TEXT, SYSINFO_COUNT), \
                 .make = make_##id, .restricted = true)

HARDWARE_NODE(acpi, acpi_report);
HARDWARE_NODE(interrupts, interrupts_report);
HARDWARE_NODE(memory, memory_report);
HARDWARE_NODE(msrs, msrs_report);
HARDWARE_NODE(mtrrs, mtrrs_report);
HARDWARE_NODE(pci, pci_report);
