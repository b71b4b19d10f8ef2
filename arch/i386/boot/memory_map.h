// The loader's memory map, put in order.
#pragma once

#include "arch/mmu.h"

void memory_map_add(u64 base, u64 size, bool usable);
bool memory_map_empty(void);
// Fills boot_info.regions: sorted, page-aligned, not overlapping; where ranges
// overlap "not usable" wins, and the trampoline's surroundings are not usable.
void memory_map_finish(void);
