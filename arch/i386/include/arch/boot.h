// The boot loader's information, in one form for Multiboot 1 and 2.
#pragma once

#include "arch/mmu.h"

#define BOOT_REGIONS_MAX 512u
#define BOOT_MODULES_MAX 8
#define BOOT_CMDLINE_MAX 1024

// A range of memory, as the loader has reported it: in any order, of any size,
// perhaps overlapping. Types are Multiboot's (specification 2.0, 3.6.8), which
// are ACPI's (6.4, table 15.10).
#define BOOT_RANGE_USABLE 1u
#define BOOT_RANGE_ACPI 3u // its tables
#define BOOT_RANGE_NVS 4u
#define BOOT_RANGE_DEFECTIVE 5u
#define BOOT_RANGE_KEPT -1u // not the loader's: never used (boot_fill.h)
struct boot_range {
    u64 base, size;
    u32 type;
};
struct boot_region {
    paddr_t base;
    u64 size;
    bool usable; // RAM that the kernel may use
};
struct boot_module {
    paddr_t base;
    u32 size;
    char name[64];
};
// A linear framebuffer, as the loader has set it up. `pitch` is the distance of
// rows in bytes, `bits` a pixel's size: 15, 16, 24 or 32.
struct boot_colour {
    u8 shift, bits; // its position in a pixel
};
struct boot_framebuffer {
    paddr_t base;
    u32 pitch, width, height; // 0: no framebuffer
    u8 bits;
    struct boot_colour red, green, blue;
};
#define BOOT_PROBLEMS_MAX 6u
struct boot_info {
    char loader[64];
    char cmdline[BOOT_CMDLINE_MAX];
    u32 range_count, region_count, module_count;
    u64 memory_dropped; // usable bytes, as there were too many ranges
    const struct boot_range *ranges;
    struct boot_region regions[BOOT_REGIONS_MAX]; // sorted, not overlapping
    struct boot_module modules[BOOT_MODULES_MAX];
    u32 start_page;   // below 640 KiB, for other CPUs to start in; 0: none
    bool rsdp_copied; // the loader has passed an RSDP (Multiboot 2)
    u8 rsdp_data[36];
    struct boot_framebuffer framebuffer;
    u32 problem_count; // of what the loader has passed; the first have texts
    char problems[BOOT_PROBLEMS_MAX][96];
};
// Filled by boot_parse() (arch/i386/boot) before any other code runs. Modules
// and the kernel's image are in usable regions; frame_init reserves them.
extern struct boot_info boot_info;

// Entry to the kernel core: paging on, boot_info filled, on the boot stack.
UPCALL NORETURN void kernel_main(void);
