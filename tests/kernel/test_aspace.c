// Address spaces: areas, faults, copy on write, remapping; bad arguments.

#include "lib/string.h"
#include "tests/kernel/aspace_helpers.h"

KERNEL_TEST(mm_areas_split_and_join)
{
    struct aspace *as = space();
    expect(!map_at(as, AT, 8, RW, 0));
    expect(areas_in(as) == 1 && as->virtual_pages == 8);
    expect(!aspace_unmap(as, AT + 2 * PG, PG));
    expect(areas_in(as) == 2 && as->virtual_pages == 7);
    expect(!map_at(as, AT + 2 * PG, 1, RW, 0));
    expect(areas_in(as) == 1);
    expect(!aspace_protect(as, AT + 3 * PG, 2 * PG, PROT_R));
    expect(areas_in(as) == 3);
    expect(!aspace_protect(as, AT + 3 * PG, 2 * PG, RW));
    expect(areas_in(as) == 1);
    expect(!map_at(as, AT + 4 * PG, 8, PROT_R, 0)); // beyond the area's end
    expect(areas_in(as) == 2 && as->virtual_pages == 12);
    expect(aspace_protect(as, AT, 13 * PG, RW) == -ENOMEM);
    expect(!aspace_unmap(as, 0x1000, USER_END - 0x1000));
    expect(areas_in(as) == 0 && as->virtual_pages == 0);
    aspace_unref(as);
}

KERNEL_TEST(mm_pages_come_on_demand)
{
    struct aspace *as = space();
    expect(!map_at(as, AT, 4, RW, 0));
    expect(as->resident_pages == 0);
    expect(get(as, AT + PG) == 0 && as->resident_pages == 1);
    static char text[2 * PAGE_SIZE];
    memset(text, 'x', sizeof(text));
    expect(aspace_write(as, AT + 100, text, sizeof(text)) == sizeof(text));
    expect(as->resident_pages == 3);
    expect(get(as, AT + 96) == 0 && get(as, AT + 2 * PG) == 0x78787878);
    expect(!aspace_discard(as, AT, 4 * PG));
    expect(as->resident_pages == 0 && get(as, AT + PG) == 0);
    // Up to the end of the mapping, not beyond.
    expect(aspace_write(as, AT + 3 * PG, text, 2 * PG) == PG);
    expect(aspace_write(as, AT + 4 * PG, text, 1) == -EFAULT);
    aspace_unref(as);
}

KERNEL_TEST(mm_access_is_checked)
{
    struct aspace *as = space();
    expect(!map_at(as, AT, 2, PROT_R, 0));
    expect(aspace_fault(as, AT, FAULT_USER | FAULT_WRITE) == -EACCES);
    expect(aspace_fault(as, AT, FAULT_USER | FAULT_EXEC) == -EACCES);
    expect(aspace_fault(as, AT, FAULT_USER) == 0);
    expect(aspace_fault(as, AT + 2 * PG, FAULT_USER) == -EFAULT);
    expect(aspace_fault(as, USER_END, FAULT_USER) == -EFAULT);
    expect(aspace_fault(as, ~0u, FAULT_USER) == -EFAULT);
    expect(!put(as, AT, 1));
    expect(!aspace_protect(as, AT, PG, RW) && put(as, AT, 1));
    expect(!aspace_protect(as, AT, PG, 0) && !put(as, AT, 2));
    expect(aspace_fault(as, AT, FAULT_USER) == -EACCES);
    expect(!aspace_protect(as, AT, PG, RW) && get(as, AT) == 1);
    aspace_unref(as);
}

KERNEL_TEST(mm_fork_copies_on_write)
{
    u64 before = frames_of(FRAME_USER), tables = frames_of(FRAME_PAGETABLE);
    struct aspace *parent = space(), *child = NULL;
    expect(!map_at(parent, AT, 3, RW, 0));
    expect(put(parent, AT, 1) && put(parent, AT + PG, 2));
    expect(!aspace_fork(parent, &child));
    expect(child->resident_pages == 2 && child->virtual_pages == 3);
    expect(frames_of(FRAME_USER) == before + 2);
    expect(put(child, AT, 10) && put(parent, AT + PG, 20));
    expect(put(child, AT + 2 * PG, 30));
    expect(get(parent, AT) == 1 && get(child, AT) == 10);
    expect(get(parent, AT + PG) == 20 && get(child, AT + PG) == 2);
    expect(get(parent, AT + 2 * PG) == 0);
    // The last space that maps a page writes to it without a copy.
    paddr_t last = frame_at(child, AT + PG);
    expect(put(child, AT + PG, 3) && frame_at(child, AT + PG) == last);
    aspace_unref(parent);
    expect(get(child, AT) == 10 && get(child, AT + PG) == 3);
    aspace_unref(child);
    expect(frames_of(FRAME_USER) == before);
    expect(frames_of(FRAME_PAGETABLE) == tables);
}

KERNEL_TEST(mm_shared_memory_stays_shared)
{
    u64 before = frames_of(FRAME_USER);
    struct aspace *parent = space(), *child = NULL;
    expect(!map_at(parent, AT, 4, RW, AREA_SHARED));
    expect(put(parent, AT, 1));
    expect(!aspace_fork(parent, &child));
    expect(get(child, AT) == 1);
    expect(put(child, AT, 2) && put(child, AT + 3 * PG, 4));
    expect(get(parent, AT) == 2 && get(parent, AT + 3 * PG) == 4);
    expect(!aspace_unmap(child, AT, PG) && get(parent, AT) == 2);
    u32 moved;
    expect(!aspace_remap(child, AT + PG, 3 * PG, 3 * PG, true, true, 2 * AT,
                         &moved));
    expect(get(child, 2 * AT + 2 * PG) == 4);
    expect(put(parent, AT + PG, 9) && get(child, 2 * AT) == 9);
    aspace_unref(parent);
    expect(get(child, 2 * AT + 2 * PG) == 4);
    // A shared mapping can grow, but its object has no pages beyond its end.
    expect(
        !aspace_remap(child, 2 * AT, 3 * PG, 5 * PG, true, false, 0, &moved));
    expect(aspace_fault(child, moved + 4 * PG, FAULT_USER) == -EIO);
    aspace_unref(child);
    expect(frames_of(FRAME_USER) == before);
}

KERNEL_TEST(mm_placement_is_top_down_and_apart)
{
    struct aspace *as = space();
    u32 a, b, c;
    expect(!aspace_map(as, 0, 4 * PG, RW, 0, 0, NULL, 0, &a));
    expect(!aspace_map(as, 0, 1, PROT_R, 0, 0, NULL, 0, &b));
    expect(a + 4 * PG == area_mmap_top(as) && b == a - PG);
    expect(!aspace_map(as, AT + 5, PG, RW, 0, 0, NULL, 0, &c) && c == AT);
    expect(!aspace_map(as, AT, PG, RW, 0, 0, NULL, 0, &c) && c == b - PG);
    expect(!aspace_unmap(as, a, 4 * PG));
    expect(!aspace_map(as, 0, 4 * PG, RW, 0, 0, NULL, 0, &c) && c == a);
    expect(aspace_map(as, 0, 0xb0000000, RW, 0, 0, NULL, 0, &c) == -ENOMEM);
    aspace_unref(as);
}

// The highest free address range, by a linear search.
static u32 highest_gap(struct aspace *as, u32 length)
{
    u32 floor = MMAP_MIN, ceiling = area_mmap_top(as), found = 0;
    struct area *a;
    list_for_each(a, &as->areas, node) {
        u32 guard = a->flags & AREA_STACK ? STACK_GUARD : 0;
        u32 end = MIN(a->start - guard, ceiling);
        if (floor < end && end - floor >= length)
            found = end - length;
        floor = a->end;
    }
    if (floor < ceiling && ceiling - floor >= length)
        found = ceiling - length;
    return found;
}

static void check_tree(struct aspace *as)
{
    struct area *a;
    list_for_each(a, &as->areas, node) {
        expect(area_at(as, a->start) == a && area_at(as, a->end - 1) == a);
        struct area *next = area_next(as, a);
        expect(area_above(as, a->end) == next);
    }
}

KERNEL_TEST(mm_placement_is_the_highest)
{
    struct aspace *as = space();
    u32 at, last = 0;
    // A stack in between, and areas around area_mmap_top.
    expect(!map_at(as, 0x90000000, 4, RW, AREA_STACK));
    for (u32 i = 0; i < 20; i++)
        expect(!map_at(as, area_mmap_top(as) + (3 * i - 4) * PG, 2, RW, 0));
    for (u32 i = 0; i < 2000; i++) {
        u32 length = (1 + test_random() % 9) * PG;
        if (test_random() % 3 == 0 && last) {
            u32 where = last + test_random() % 40 * PG;
            aspace_unmap(as, MIN(where, USER_END - length), length);
            continue;
        }
        mutex_lock(&as->lock);
        expect(area_find_gap(as, length) == highest_gap(as, length));
        if (i % 64 == 0)
            check_tree(as);
        mutex_unlock(&as->lock);
        length = (1 + test_random() % 9) * PG;
        u32 prot = test_random() & 1 ? RW : PROT_R;
        expect(!aspace_map(as, 0, length, prot, 0, 0, NULL, 0, &at));
        last = at;
    }
    aspace_unref(as);
}

KERNEL_TEST(mm_bad_numbers_are_refused)
{
    struct aspace *as = space();
    u32 out;
    expect(!map_at(as, AT, 2, RW, 0) && put(as, AT, 1));
    static const struct {
        u32 addr, length;
        int map, unmap, protect;
    } bad[] = {
        { AT, 0, -EINVAL, -EINVAL, 0 },
        { AT + 1, PG, -EINVAL, -EINVAL, -EINVAL },
        { 0, PG, -EPERM, 0, -ENOMEM },
        { 0xf000, PG, -EPERM, 0, -ENOMEM },
        { AT, ~0u, -ENOMEM, -EINVAL, -ENOMEM },
        { AT, 0xfffff000, -ENOMEM, -EINVAL, -ENOMEM },
        { AT, -AT, -ENOMEM, -EINVAL, -ENOMEM },
        { AT, USER_END - AT + 1, -ENOMEM, -EINVAL, -ENOMEM },
        { USER_END, PG, -ENOMEM, -EINVAL, -ENOMEM },
        { USER_END - PG, 2 * PG, -ENOMEM, -EINVAL, -ENOMEM },
        { 0xfffff000, PG, -ENOMEM, -EINVAL, -ENOMEM },
        { 0xfffff000, 2 * PG, -ENOMEM, -EINVAL, -ENOMEM },
        { KERNEL_BASE, ~0u, -ENOMEM, -EINVAL, -ENOMEM },
    };
    for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
        u32 addr = bad[i].addr, length = bad[i].length;
        expect(aspace_map(as, addr, length, RW, 0, MAP_AT_EXACTLY, NULL, 0,
                          &out) == bad[i].map);
        expect(aspace_unmap(as, addr, length) == bad[i].unmap);
        expect(aspace_protect(as, addr, length, PROT_R) == bad[i].protect);
    }
    expect(aspace_map(as, AT, PG, RW, 0, MAP_NO_REPLACE, NULL, 0, &out) ==
           -EEXIST);
    expect(aspace_remap(as, AT, PG, 0, true, false, 0, &out) == -EINVAL);
    expect(aspace_remap(as, AT, 0, PG, true, false, 0, &out) == -EINVAL);
    expect(aspace_remap(as, AT + 1, PG, PG, true, false, 0, &out) == -EINVAL);
    expect(aspace_remap(as, AT, PG, ~0u, true, false, 0, &out) == -EINVAL);
    expect(aspace_remap(as, AT, 3 * PG, PG, true, false, 0, &out) == -EFAULT);
    expect(aspace_remap(as, AT, ~PG, PG, true, false, 0, &out) == -EINVAL);
    expect(aspace_remap(as, 2 * AT, PG, PG, true, false, 0, &out) == -EFAULT);
    expect(aspace_remap(as, AT, PG, PG, true, true, AT, &out) == -EINVAL);
    expect(aspace_remap(as, AT, PG, PG, false, true, 2 * AT, &out) == -EINVAL);
    expect(aspace_remap(as, AT, PG, PG, true, true, USER_END, &out) == -EINVAL);
    expect(aspace_remap(as, AT, PG, PG, true, true, 0xfffff000, &out) ==
           -EINVAL);
    expect(areas_in(as) == 1 && get(as, AT) == 1);
    expect(aspace_write(as, USER_END - 2, &out, 4) == -EFAULT);
    expect(aspace_write(as, ~1u, &out, 4) == -EFAULT);
    aspace_unref(as);
}

KERNEL_TEST(mm_remap_keeps_contents)
{
    struct aspace *as = space();
    u32 at;
    expect(!map_at(as, AT, 4, RW, 0));
    for (u32 i = 0; i < 4; i++)
        expect(put(as, AT + i * PG, i + 1));
    expect(!aspace_remap(as, AT, 4 * PG, 6 * PG, false, false, 0, &at));
    expect(at == AT && as->virtual_pages == 6 && areas_in(as) == 1);
    expect(!map_at(as, AT + 6 * PG, 1, PROT_R, 0));
    expect(aspace_remap(as, AT, 6 * PG, 8 * PG, false, false, 0, &at) ==
           -ENOMEM);
    expect(!aspace_remap(as, AT, 6 * PG, 8 * PG, true, false, 0, &at));
    expect(at != AT && as->virtual_pages == 9 && as->resident_pages == 4);
    for (u32 i = 0; i < 4; i++)
        expect(get(as, at + i * PG) == i + 1);
    expect(aspace_fault(as, AT, FAULT_USER) == -EFAULT);
    u32 tail;
    expect(!aspace_remap(as, at + PG, 3 * PG, 2 * PG, true, true, AT, &tail));
    expect(tail == AT && get(as, AT + PG) == 3 && as->resident_pages == 3);
    expect(get(as, at) == 1);
    expect(aspace_fault(as, at + 3 * PG, FAULT_USER) == -EFAULT);
    aspace_unref(as);
}

KERNEL_TEST(mm_stack_grows_to_its_limit)
{
    struct aspace *as = space();
    u32 top = 0xb0000000;
    as->stack_limit = 64 * PG;
    expect(!map_at(as, top - PG, 1, RW, AREA_STACK));
    expect(put(as, top - 10 * PG, 1) && as->virtual_pages == 10);
    expect(put(as, top - 64 * PG, 1) && as->virtual_pages == 64);
    expect(!put(as, top - 64 * PG - 4, 1));
    aspace_unref(as);

    as = space();
    expect(!map_at(as, top - PG, 1, RW, AREA_STACK));
    expect(!map_at(as, top - 100 * PG, 1, RW, 0));
    u32 lowest = top - 99 * PG + STACK_GUARD;
    expect(put(as, lowest, 1));
    expect(!put(as, lowest - PG, 1));
    aspace_unref(as);
}

KERNEL_TEST(mm_brk_moves)
{
    struct aspace *as = space();
    as->brk_start = as->brk = AT + 0x123;
    expect(aspace_set_brk(as, 0) == AT + 0x123);
    expect(aspace_set_brk(as, AT + 3 * PG + 1) == AT + 3 * PG + 1);
    expect(as->virtual_pages == 3 && put(as, AT + 3 * PG, 7));
    expect(aspace_set_brk(as, AT + 3 * PG + 8) == AT + 3 * PG + 8);
    expect(areas_in(as) == 1 && as->virtual_pages == 3);
    expect(!map_at(as, AT + 8 * PG, 1, PROT_R, 0));
    u32 brk = as->brk;
    expect(aspace_set_brk(as, AT + 9 * PG) == brk);
    expect(aspace_set_brk(as, ~0u) == brk && aspace_set_brk(as, 1) == brk);
    expect(aspace_set_brk(as, AT + PG) == AT + PG);
    expect(as->virtual_pages == 1 && as->resident_pages == 0);
    expect(aspace_set_brk(as, AT + 4 * PG) && get(as, AT + 3 * PG) == 0);
    aspace_unref(as);
}
