// Filling in boot_info, for both Multiboot protocols.
//
// There is no console yet: what is wrong with the loader's information is kept
// in boot_info.problems and logged by kernel_main. Runs once, on the boot CPU.
#pragma once

#include "arch/boot.h"
#include "arch/i386/boot/multiboot.h"

// Real mode's vectors, the BIOS's data, and the page in which the other CPUs
// start: not usable. If that is not free they start in the lowest one that is.
#define REAL_MODE_END 0x9000u
#define START_PAGE 0x8000u
// Video memory and the BIOS's ROM: not usable, whatever the loader says
// (v86's).
#define ROM_START 0xa0000u
#define ROM_END 0x100000u

// Forgets everything.
void boot_fill_begin(void);
// `text` has no end of line; what does not fit is cut off.
void boot_problem(const char *fmt, ...) PRINTF(1, 2);
// Copies at most size - 1 bytes of a text of at most `max` bytes.
void boot_copy_text(char *dst, size_t size, const char *text, size_t max);
// The module's name is the last path component of the first word of its text,
// which may be NULL.
void boot_add_module(u32 start, u32 end, const char *text, size_t max);
void boot_add_memory(u64 base, u64 size, u32 type);
// For loaders that report sizes only (KiB below 1 MiB, and above it): used if
// there is no map.
void boot_add_plain_memory(u32 lower, u32 upper);
// Makes boot_info.regions.
void boot_fill_finish(void);

// The tags of Multiboot 2: `size` bytes may be read, from which the structure's
// own size may differ.
void mb2_parse(const struct mb2_info *info, size_t size);
