// Limits on the size of an address space (setrlimit).

#include "kernel/base/errno.h"
#include "kernel/mm/area.h"

static bool is_data(const struct area *a, u32 prot)
{
    return prot & PROT_W && !(a->flags & (AREA_SHARED | AREA_STACK));
}

// Counted only for tasks with such a limit: for all other tasks it costs
// nothing.
static u32 data_pages(const struct aspace *as)
{
    u32 pages = 0;
    const struct area *a;
    list_for_each(a, &as->areas, node) {
        if (is_data(a, a->prot))
            pages += (a->end - a->start) / PAGE_SIZE;
    }
    return pages;
}

static bool exceeds(u32 pages, u32 more, u32 limit)
{
    return limit != ~0u && (u64)pages + more > limit / PAGE_SIZE;
}

int aspace_check_size(struct aspace *as, u32 pages)
{
    mutex_assert_held(&as->lock);
    u32 limit = READ_ONCE(as->size_limit);
    return exceeds(as->virtual_pages, pages, limit) ? -ENOMEM : 0;
}

int aspace_check_data(struct aspace *as, const struct area *like, u32 prot,
                      u32 pages)
{
    mutex_assert_held(&as->lock);
    u32 limit = READ_ONCE(as->data_limit);
    if (likely(limit == ~0u) || !pages || !is_data(like, prot))
        return 0;
    return exceeds(data_pages(as), pages, limit) ? -ENOMEM : 0;
}

static u32 pages_between(const struct area *a, u32 start, u32 end)
{
    return (MIN(a->end, end) - MAX(a->start, start)) / PAGE_SIZE;
}

int aspace_check_writable(struct aspace *as, u32 start, u32 end)
{
    mutex_assert_held(&as->lock);
    u32 limit = READ_ONCE(as->data_limit), more = 0;
    if (likely(limit == ~0u))
        return 0;
    const struct area *a = area_above(as, start);
    for (; a && a->start < end; a = area_next(as, a)) {
        if (!is_data(a, a->prot) && is_data(a, PROT_W))
            more += pages_between(a, start, end);
    }
    return more && exceeds(data_pages(as), more, limit) ? -ENOMEM : 0;
}

u32 aspace_pages_within(struct aspace *as, u32 start, u32 end)
{
    mutex_assert_held(&as->lock);
    u32 pages = 0;
    const struct area *a = area_above(as, start);
    for (; a && a->start < end; a = area_next(as, a))
        pages += pages_between(a, start, end);
    return pages;
}
