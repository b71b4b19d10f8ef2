// The boot loader's information, in one form for Multiboot 1 and 2.
#pragma once

#include "arch/mmu.h"

#define BOOT_REGIONS_MAX 64
#define BOOT_MODULES_MAX 8
#define BOOT_CMDLINE_MAX 1024

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
struct boot_info {
    char loader[64];
    char cmdline[BOOT_CMDLINE_MAX];
    u32 region_count, module_count;
    struct boot_region regions[BOOT_REGIONS_MAX]; // sorted, not overlapping
    struct boot_module modules[BOOT_MODULES_MAX];
    paddr_t rsdp; // address of a copy of the RSDP (Multiboot2), 0 if unknown
    bool rsdp_copied;
    u8 rsdp_data[36];
};
// Filled by boot_parse() (arch/i386/boot) before any other code runs. Modules
// and the kernel's image are in usable regions; frame_init reserves them.
extern struct boot_info boot_info;

// Entry to the kernel core: paging on, boot_info filled, on the boot stack.
UPCALL NORETURN void kernel_main(void);
