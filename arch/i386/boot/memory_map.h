// The loader's memory map, sorted and cleaned.
#pragma once

#include "arch/boot.h"

#define MEMORY_RANGES_MAX 128u

struct memory_range {
    u64 start, end;
    bool usable;
};
struct memory_map {
    u32 range_count, border_count;
    struct memory_range ranges[MEMORY_RANGES_MAX];
    u64 borders[2 * MEMORY_RANGES_MAX];
};

// Adds a range as reported by the firmware: any order, any size.
void memory_map_add(struct memory_map *m, u64 base, u64 size, bool usable);
// Writes at most `max` regions: sorted, page-aligned, not overlapping, and not
// adjacent to one of the same kind. Where ranges overlap "not usable" takes
// precedence. Returns their number.
u32 memory_map_finish(struct memory_map *m, struct boot_region *out, u32 max);
