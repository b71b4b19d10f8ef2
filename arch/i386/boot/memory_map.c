// Firmware's memory maps overlap, come in any order and do not end at pages.
//
// The borders of all ranges, sorted, cut the address space into pieces; each
// piece is usable if some usable range and no other range covers it. Runs once,
// on the boot CPU.

#include "arch/i386/boot/memory_map.h"

#include "arch/boot.h"

#define RANGES_MAX 128u

// Real mode's vectors, the BIOS's data, and the page in which CPUs start.
#define REAL_MODE_END 0x9000u

struct range {
    u64 start, end;
    bool usable;
};

static struct range ranges[RANGES_MAX];
static u32 range_count;
static u64 borders[2 * RANGES_MAX];
static u32 border_count;

void memory_map_add(u64 base, u64 size, bool usable)
{
    u64 end = base + size;
    if (end < base)
        end = ~0ull & ~(u64)(PAGE_SIZE - 1);
    // Whole pages: usable ones shrink, others grow.
    u64 mask = PAGE_SIZE - 1;
    if (usable) {
        base = (base + mask) & ~mask;
        end &= ~mask;
    } else {
        base &= ~mask;
        end = end > ~mask ? end & ~mask : (end + mask) & ~mask;
    }
    // Without room a usable range is not used, which is safe; one that is not
    // usable takes the last place rather than be forgotten.
    if (base >= end || (range_count == RANGES_MAX && usable))
        return;
    if (range_count == RANGES_MAX)
        range_count--;
    ranges[range_count++] = (struct range){ base, end, usable };
}

bool memory_map_empty(void)
{
    return range_count == 0;
}

static void add_border(u64 at)
{
    u32 i = border_count;
    while (i && borders[i - 1] > at)
        i--;
    if (i && borders[i - 1] == at)
        return;
    for (u32 n = border_count++; n > i; n--)
        borders[n] = borders[n - 1];
    borders[i] = at;
}

// 1 usable, 0 not usable, -1 not mentioned.
static int piece_kind(u64 start, u64 end)
{
    int kind = -1;
    for (u32 i = 0; i < range_count; i++) {
        const struct range *r = &ranges[i];
        if (r->start > start || r->end < end)
            continue;
        if (!r->usable)
            return 0;
        kind = 1;
    }
    return kind;
}

static void emit(u64 start, u64 end, bool usable)
{
    u32 n = boot_info.region_count;
    struct boot_region *last = n ? &boot_info.regions[n - 1] : NULL;
    if (last && last->usable == usable && last->base + last->size == start) {
        last->size = end - last->base;
        return;
    }
    if (n == BOOT_REGIONS_MAX)
        return;
    boot_info.regions[boot_info.region_count++] =
        (struct boot_region){ start, end - start, usable };
}

void memory_map_finish(void)
{
    memory_map_add(0, REAL_MODE_END, false);
    for (u32 i = 0; i < range_count; i++) {
        add_border(ranges[i].start);
        add_border(ranges[i].end);
    }
    for (u32 i = 1; i < border_count; i++) {
        int kind = piece_kind(borders[i - 1], borders[i]);
        if (kind >= 0)
            emit(borders[i - 1], borders[i], kind);
    }
}
