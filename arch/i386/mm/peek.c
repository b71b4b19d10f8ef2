#include "arch/peek.h"

#include "arch/cpu.h"
#include "arch/i386/mm/entry.h"
#include "arch/i386/mm/memory.h"
#include "kernel/mm/aspace.h"
#include "kernel/sched/task.h"

void user_peek_begin(struct user_peek *p)
{
    const struct thread *t = current;
    const struct aspace *as = this_cpu_read(aspace);
    // Only what is loaded here is kept from being taken apart.
    bool ours = as && t->task && READ_ONCE(t->task->aspace) == as;
    p->pt = ours ? &as->pt : NULL;
    p->page = PEEK_NO_PAGE;
    p->window_used = false;
}

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
static ALWAYS_INLINE bool read_present(const u32 *entry, paddr_t *frame)
{
    const u32 wanted = ENTRY_PRESENT | ENTRY_USER;
    u32 low = READ_ONCE(entry[0]), high = 0;
    if (likely(mmu_pae)) {
        high = READ_ONCE(entry[1]);
        if (READ_ONCE(entry[0]) != low || READ_ONCE(entry[1]) != high)
            return false;
    }
    *frame = ((u64)high << 32 | low) & ENTRY_FRAME;
    return (low & wanted) == wanted;
}

const u32 *user_peek_other(struct user_peek *p, u32 va, u32 bytes)
{
    u32 page = va & PAGE_MASK;
    paddr_t frame;
    if (!p->pt || page >= USER_END || va - page > PAGE_SIZE - bytes)
        return NULL;
    const u32 *entry = leaf_entry(p->pt, page);
    if (!entry || !read_present(entry, &frame))
        return NULL;
    if (likely(is_direct(frame)))
        p->at = phys_to_virt(frame);
    else
        show(p, frame);
    p->page = page;
    return (const u32 *)(p->at + (va - page));
}
