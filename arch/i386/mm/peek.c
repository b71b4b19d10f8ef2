#include "arch/i386/mm/peek.h"

#include "arch/i386/mm/entry.h"
#include "arch/i386/mm/memory.h"

#define FRAME_HIGH (u32)(ENTRY_FRAME >> 32)

static u32 window(void)
{
    return sampler_window(this_cpu_read(id));
}

// Under the window of a sampler that this one interrupted, if any.
static NOINLINE void show(struct user_peek *p, paddr_t frame)
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

// Another CPU may be changing the entry: two halves of different values are not
// taken for an address.
bool user_peek_page(struct user_peek *p, u32 va)
{
    const u32 wanted = ENTRY_PRESENT | ENTRY_USER;
    if (!p->pt || va >= USER_END)
        return false;
    const u32 *entry = leaf_entry_inline(p->pt, va);
    if (!entry)
        return false;
    u32 low = READ_ONCE(entry[0]);
    u32 high = mmu_pae ? READ_ONCE(entry[1]) & FRAME_HIGH : 0;
    if ((low & wanted) != wanted || READ_ONCE(entry[0]) != low)
        return false;
    u32 frame = low & PAGE_MASK;
    if (likely(!high && is_direct(frame)))
        p->at = phys_to_virt(frame);
    else
        show(p, (u64)high << 32 | frame);
    p->page = va & PAGE_MASK;
    return true;
}
