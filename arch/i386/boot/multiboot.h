// The Multiboot 1 (0.6.96) and Multiboot 2 (2.0) boot protocols, as far as they
// are used. boot.S includes the first part too.
#pragma once

#define MB1_HEADER_MAGIC 0x1badb002
#define MB1_HEADER_FLAGS 3 // modules page-aligned, memory map wanted
#define MB1_BOOT_MAGIC 0x2badb002

#define MB2_HEADER_MAGIC 0xe85250d6
#define MB2_BOOT_MAGIC 0x36d76289

// Tags of the header (Multiboot 2.0, 3.1.3 to 3.1.13).
#define MB2_HEADER_REQUEST 1
#define MB2_HEADER_CONSOLE 4
#define MB2_HEADER_FRAMEBUFFER 5
#define MB2_HEADER_MODULE_ALIGN 6
#define MB2_HEADER_RELOCATABLE 10
#define MB2_HEADER_OPTIONAL 1
#define MB2_CONSOLE_TEXT 2
#define MB2_PREFER_LOWEST 1

#define MB2_TAG_END 0
#define MB2_TAG_CMDLINE 1
#define MB2_TAG_LOADER 2
#define MB2_TAG_MODULE 3
#define MB2_TAG_MEMORY 4
#define MB2_TAG_MMAP 6
#define MB2_TAG_FRAMEBUFFER 8
#define MB2_TAG_RSDP_OLD 14
#define MB2_TAG_RSDP_NEW 15

#ifndef __ASSEMBLER__

#include "lib/types.h"

#define MB1_HAS_MEMORY (1u << 0)
#define MB1_HAS_CMDLINE (1u << 2)
#define MB1_HAS_MODULES (1u << 3)
#define MB1_HAS_MMAP (1u << 6)
#define MB1_HAS_LOADER (1u << 9)

struct mb1_info {
    u32 flags;
    u32 mem_lower, mem_upper; // KiB below 1 MiB, KiB above it
    u32 boot_device;
    u32 cmdline;
    u32 mods_count, mods_addr;
    u32 syms[4];
    u32 mmap_length, mmap_addr;
    u32 drives_length, drives_addr;
    u32 config_table;
    u32 loader_name;
};
_Static_assert(offsetof(struct mb1_info, mmap_length) == 44 &&
                   offsetof(struct mb1_info, loader_name) == 64,
               "Multiboot 0.6.96, 3.3");

struct mb1_module { // the loader may place it anywhere
    u32 start, end, string, reserved;
} PACKED;

struct mb1_mmap_entry {
    u32 size; // of the following fields
    u64 base, length;
    u32 type;
} PACKED;
_Static_assert(sizeof(struct mb1_mmap_entry) == 24, "Multiboot 0.6.96, 3.3");

struct mb2_info {
    u32 total_size, reserved;
};

struct mb2_tag {
    u32 type, size; // the next tag is at the next multiple of 8
};

struct mb2_string { // command line, loader
    struct mb2_tag tag;
    char text[];
};

struct mb2_module {
    struct mb2_tag tag;
    u32 start, end;
    char text[];
};

struct mb2_memory {
    struct mb2_tag tag;
    u32 lower, upper;
};

struct mb2_mmap_entry {
    u64 base, length;
    u32 type, reserved;
} PACKED; // the previous entry's size gives its position
_Static_assert(sizeof(struct mb2_mmap_entry) == 24, "Multiboot 2.0, 3.6.8");

struct mb2_mmap {
    struct mb2_tag tag;
    u32 entry_size, entry_version;
    u8 entries[];
};

struct mb2_framebuffer {
    struct mb2_tag tag;
    u64 base;
    u32 pitch, width, height;
    u8 bits, kind;
    u16 reserved;
    u8 red_shift, red_bits, green_shift, green_bits, blue_shift, blue_bits;
} PACKED;
_Static_assert(sizeof(struct mb2_framebuffer) == 38, "Multiboot 2.0, 3.6.12");
#define MB2_FRAMEBUFFER_RGB 1
#define MB2_FRAMEBUFFER_TEXT 2

struct mb2_rsdp {
    struct mb2_tag tag;
    u8 rsdp[];
};

#endif
