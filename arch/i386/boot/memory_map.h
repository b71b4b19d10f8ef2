// The loader's memory map, sorted and cleaned.
#pragma once

#include "arch/boot.h"

#define MEMORY_RANGES_MAX 512u // UEFI firmware has been seen to have 312

// How many more ranges cover the memory above this address than below it.
struct memory_border {
    u64 at;
    s16 usable, others;
};
struct memory_map {
    u32 range_count, border_count;
    // Usable bytes for which there was no room.
    u64 dropped_ranges, dropped_regions;
    struct boot_range ranges[MEMORY_RANGES_MAX];
    struct memory_border borders[2 * MEMORY_RANGES_MAX];
};

// Adds a range as reported by the firmware: any order, any size. If the array
// is full a usable one is dropped: this one, or one that makes room for it.
void memory_map_add(struct memory_map *m, u64 base, u64 size, u32 type);
// Writes at most `max` regions: sorted, page-aligned, not overlapping, and not
// adjacent to one of the same kind. Where ranges overlap "not usable" takes
// precedence. Returns their number. The highest ones are dropped if they are
// too many.
u32 memory_map_finish(struct memory_map *m, struct boot_region *out, u32 max);
