// hardware.*: what the machine consists of and how it is set up, as text for a
// report (user/hwreport). Read from the hardware at each read; root only, since
// it shows physical addresses.

#include "arch/boot.h"
#include "kernel/base/providers.h"
#include "kernel/monitor/sysinfo.h"

static const char *type_name(u32 type)
{
    switch (type) {
    case BOOT_RANGE_USABLE:
        return "usable";
    case BOOT_RANGE_ACPI:
        return "ACPI tables";
    case BOOT_RANGE_NVS:
        return "ACPI's memory in sleep states";
    case BOOT_RANGE_DEFECTIVE:
        return "defective";
    case BOOT_RANGE_KEPT:
        return "never used by Strobe";
    }
    return "reserved";
}

// The loader's ranges as they are, then what the kernel makes of them.
static void memory_report(struct chain *out)
{
    for (u32 i = 0; i < boot_info.range_count; i++) {
        const struct boot_range *r = &boot_info.ranges[i];
        chain_printf(out, "%012llx-%012llx %10llu KiB  type %d: %s\n", r->base,
                     r->base + r->size - 1, r->size >> 10, (s32)r->type,
                     type_name(r->type));
    }
    if (boot_info.memory_dropped)
        chain_printf(out, "Not used, as these are too many: %llu KiB\n",
                     boot_info.memory_dropped >> 10);
    chain_printf(out, "Sorted:\n");
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
