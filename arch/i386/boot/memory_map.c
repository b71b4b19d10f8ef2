// Sanitises the firmware's memory map, whose ranges may overlap, are unordered
// and need not end at page boundaries.
//
// The sorted borders of all ranges divide the address space into pieces; a
// piece is usable if a usable range and no other range covers it. Runs once, on
// the boot CPU, before anything can be logged.

#include "arch/i386/boot/memory_map.h"

#define LAST_PAGE (~(u64)(PAGE_SIZE - 1))

void memory_map_add(struct memory_map *m, u64 base, u64 size, bool usable)
{
    u64 end = base + size < base ? LAST_PAGE : base + size;
    // Whole pages: usable ranges shrink, others grow.
    if (usable) {
        base = base > LAST_PAGE ? LAST_PAGE : ALIGN_UP(base, (u64)PAGE_SIZE);
        end = ALIGN_DOWN(end, (u64)PAGE_SIZE);
    } else {
        base = ALIGN_DOWN(base, (u64)PAGE_SIZE);
        end = end > LAST_PAGE ? LAST_PAGE : ALIGN_UP(end, (u64)PAGE_SIZE);
    }
    if (base >= end)
        return;
    // If the array is full, a usable range is dropped, which is safe; an
    // unusable one replaces the last entry.
    if (m->range_count == MEMORY_RANGES_MAX) {
        if (usable)
            return;
        m->range_count--;
    }
    m->ranges[m->range_count++] = (struct memory_range){ base, end, usable };
}

static void add_border(struct memory_map *m, u64 at)
{
    u32 i = m->border_count;
    while (i && m->borders[i - 1] > at)
        i--;
    if (i && m->borders[i - 1] == at)
        return;
    for (u32 n = m->border_count++; n > i; n--)
        m->borders[n] = m->borders[n - 1];
    m->borders[i] = at;
}

enum piece { UNKNOWN, USABLE, NOT_USABLE };

static enum piece piece_kind(const struct memory_map *m, u64 start, u64 end)
{
    enum piece kind = UNKNOWN;
    for (u32 i = 0; i < m->range_count; i++) {
        const struct memory_range *r = &m->ranges[i];
        if (r->start > start || r->end < end)
            continue;
        if (!r->usable)
            return NOT_USABLE;
        kind = USABLE;
    }
    return kind;
}

u32 memory_map_finish(struct memory_map *m, struct boot_region *out, u32 max)
{
    u32 n = 0;
    m->border_count = 0;
    for (u32 i = 0; i < m->range_count; i++) {
        add_border(m, m->ranges[i].start);
        add_border(m, m->ranges[i].end);
    }
    for (u32 i = 1; i < m->border_count; i++) {
        u64 start = m->borders[i - 1], end = m->borders[i];
        enum piece kind = piece_kind(m, start, end);
        struct boot_region *last = n ? &out[n - 1] : NULL;
        bool usable = kind == USABLE;
        if (kind == UNKNOWN)
            continue;
        if (last && last->usable == usable && last->base + last->size == start)
            last->size = end - last->base;
        else if (n < max)
            out[n++] = (struct boot_region){ start, end - start, usable };
    }
    return n;
}
