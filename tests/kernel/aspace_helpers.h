// Helpers of the in-kernel tests of address spaces.
//
// The memory of these spaces is accessed with aspace_read and aspace_write;
// only the test of the shootdown loads them on a CPU. Guest programs
// (tests/guest/mm_*.c, many_cpus.c) test the rest.
#pragma once

#include "kernel/base/errno.h"
#include "kernel/mm/area.h"
#include "kernel/mm/frame.h"
#include "tests/kernel/test.h"

#define RW (PROT_R | PROT_W)
#define AT 0x10000000u // the address of the tests' mappings
#define PG PAGE_SIZE

static inline u64 frames_of(enum frame_use use)
{
    struct frame_stats s;
    frame_stats(&s);
    return s.by_use[use];
}

static inline struct aspace *space(void)
{
    struct aspace *as = NULL;
    if (aspace_create(&as))
        panic("no memory for a test");
    return as;
}

static inline int map_at(struct aspace *as, u32 addr, u32 pages, u32 prot,
                         u32 flags)
{
    u32 got;
    int err = aspace_map(as, addr, pages * PG, prot, flags, MAP_AT_EXACTLY,
                         NULL, 0, &got);
    expect(err || got == addr);
    return err;
}

static inline bool put(struct aspace *as, u32 addr, u32 value)
{
    return aspace_write(as, addr, &value, sizeof(value)) == sizeof(value);
}

static inline u32 get(struct aspace *as, u32 addr)
{
    u32 value = 0xdead;
    aspace_read(as, addr, &value, sizeof(value));
    return value;
}

static inline u32 areas_in(struct aspace *as)
{
    u32 n = 0;
    struct area *a;
    list_for_each(a, &as->areas, node)
        n++;
    return n;
}

static inline paddr_t frame_at(struct aspace *as, u32 addr)
{
    struct mapping m;
    return pagetable_lookup(&as->pt, addr, &m) ? m.frame : 0;
}
