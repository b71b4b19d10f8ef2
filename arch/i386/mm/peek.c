#include "arch/i386/mm/peek.h"

static u32 window(void)
{
    return sampler_window(this_cpu_read(id));
}

// The first use saves the window's old entry, for a sampler that this one may
// have interrupted.
NOINLINE void user_peek_show(struct user_peek *p, paddr_t frame)
{
    void *entry = leaf_entry(&kernel_pagetable, window());
    u64 value = entry_make(frame, PROT_R | PROT_GLOBAL);
    u64 before = entry_exchange(entry, value);
    if (!p->window_used)
        p->under = before;
    p->window_used = true;
    tlb_flush_page(window());
    p->at = (const u8 *)window();
}

void user_peek_close(struct user_peek *p)
{
    entry_exchange(leaf_entry(&kernel_pagetable, window()), p->under);
    tlb_flush_page(window());
}

NOINLINE bool user_peek_page(struct user_peek *p, u32 va)
{
    return user_peek_page_inline(p, va);
}

const u32 *user_peek_elsewhere(struct user_peek *p, u32 va, u32 bytes)
{
    if ((!p->at || va - p->page >= PAGE_SIZE) && !user_peek_page(p, va))
        return NULL;
    u32 offset = va - p->page;
    return offset <= PAGE_SIZE - bytes ? (const u32 *)(p->at + offset) : NULL;
}
