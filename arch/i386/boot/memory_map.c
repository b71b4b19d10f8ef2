// Sanitises the firmware's memory map, whose ranges may overlap, are unordered
// and need not end at page boundaries.
//
// A sweep over the sorted borders of all ranges: they divide the address space
// into pieces, and a piece is usable if a usable range and no other range
// covers it. Runs once, on the boot CPU, before anything can be logged.

#include "arch/i386/boot/memory_map.h"

#define LAST_PAGE (~(u64)(PAGE_SIZE - 1))

void memory_map_add(struct memory_map *m, u64 base, u64 size, u32 type)
{
    struct boot_range *to = &m->ranges[m->range_count];
    if (m->range_count < MEMORY_RANGES_MAX) {
        m->range_count++;
    } else if (type == BOOT_RANGE_USABLE) {
        m->dropped_ranges += size;
        return;
    } else {
        do {
            if (to-- == m->ranges)
                return; // no usable one is left, and none will be added
        } while (to->type != BOOT_RANGE_USABLE);
        m->dropped_ranges += to->size;
    }
    *to = (struct boot_range){ base, size, type };
}

static struct memory_border *border_at(struct memory_map *m, u64 at)
{
    u32 i = m->border_count;
    while (i && m->borders[i - 1].at > at)
        i--;
    if (i && m->borders[i - 1].at == at)
        return &m->borders[i - 1];
    for (u32 n = m->border_count++; n > i; n--)
        m->borders[n] = m->borders[n - 1];
    m->borders[i] = (struct memory_border){ .at = at };
    return &m->borders[i];
}

static void add_border(struct memory_map *m, u64 at, bool usable, s16 change)
{
    struct memory_border *b = border_at(m, at);
    if (usable)
        b->usable = (s16)(b->usable + change);
    else
        b->others = (s16)(b->others + change);
}

// Whole pages: usable ranges shrink, others grow.
static void add_borders(struct memory_map *m, const struct boot_range *r)
{
    bool usable = r->type == BOOT_RANGE_USABLE;
    u64 start = r->base;
    u64 end = start + r->size < start ? LAST_PAGE : start + r->size;
    if (usable) {
        start = start > LAST_PAGE ? LAST_PAGE : ALIGN_UP(start, (u64)PAGE_SIZE);
        end = ALIGN_DOWN(end, (u64)PAGE_SIZE);
    } else {
        start = ALIGN_DOWN(start, (u64)PAGE_SIZE);
        end = end > LAST_PAGE ? LAST_PAGE : ALIGN_UP(end, (u64)PAGE_SIZE);
    }
    if (start >= end)
        return;
    add_border(m, start, usable, 1);
    add_border(m, end, usable, -1);
}

u32 memory_map_finish(struct memory_map *m, struct boot_region *out, u32 max)
{
    u32 n = 0;
    s32 usable = 0, others = 0;
    m->border_count = 0;
    m->dropped_regions = 0;
    for (u32 i = 0; i < m->range_count; i++)
        add_borders(m, &m->ranges[i]);
    for (u32 i = 0; i + 1 < m->border_count; i++) {
        u64 start = m->borders[i].at, end = m->borders[i + 1].at;
        struct boot_region *last = n ? &out[n - 1] : NULL;
        usable += m->borders[i].usable;
        others += m->borders[i].others;
        if (!usable && !others)
            continue;
        if (last && last->usable == !others && last->base + last->size == start)
            last->size = end - last->base;
        else if (n < max)
            out[n++] = (struct boot_region){ start, end - start, !others };
        else if (!others)
            m->dropped_regions += end - start;
    }
    return n;
}
