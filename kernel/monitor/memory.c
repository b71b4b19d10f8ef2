// system.physmem and system.slabs.

#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/monitor/sysinfo.h"
#include "kernel/monitor/sysinfo_values.h"
#include "lib/string.h"

static u64 bytes(u64 frames)
{
    return frames * PAGE_SIZE;
}

void sysinfo_fill_physmem(struct sysinfo_physmem *out)
{
    struct frame_stats s;
    frame_stats(&s);
    *out = (struct sysinfo_physmem){
        .total = bytes(s.total),
        .unavailable = bytes(s.unavailable),
        .used = bytes(s.used),
        .free = bytes(s.free),
        .low_total = bytes(s.zone_total[0]),
        .low_free = bytes(s.zone_free[0]),
        .high_total = bytes(s.zone_total[1]),
        .high_free = bytes(s.zone_free[1]),
        .kernel = bytes(s.by_use[FRAME_KERNEL]),
        .slab = bytes(s.by_use[FRAME_SLAB]),
        .pagetable = bytes(s.by_use[FRAME_PAGETABLE]),
        .kstack = bytes(s.by_use[FRAME_KSTACK]),
        .user = bytes(s.by_use[FRAME_USER]),
        .file = bytes(s.by_use[FRAME_FILE]),
        .buffer = bytes(s.by_use[FRAME_BUFFER]),
    };
}

static int make_physmem(struct chain *out, u32 number UNUSED)
{
    struct sysinfo_physmem *record = chain_add(out);
    if (record)
        sysinfo_fill_physmem(record);
    return 0;
}

static void put_slab(const struct slab_cache *c, void *arg)
{
    struct sysinfo_slab *record = chain_add(arg);
    if (!record)
        return;
    strlcpy(record->name, c->name, sizeof(record->name));
    record->object_size = c->object_size;
    record->objects = c->used;
    record->room = c->slabs * c->objects_per_slab;
    record->memory = bytes((u64)c->slabs << c->order);
}

static int make_slabs(struct chain *out, u32 number UNUSED)
{
    slab_for_each(put_slab, out);
    return 0;
}

SYSINFO_NODE(physmem, .path = "system.physmem",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_PHYSMEM),
             .make = make_physmem);
SYSINFO_NODE(slabs, .path = "system.slabs",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_SLAB),
             .make = make_slabs);
