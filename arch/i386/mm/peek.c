#include "arch/peek.h"

#include "arch/cpu.h"
#include "arch/i386/mm/entry.h"
#include "arch/i386/mm/memory.h"
#include "kernel/mm/aspace.h"
#include "kernel/sched/task.h"

void user_peek_begin(struct user_peek *p)
{
    const struct cpu *c = this_cpu();
    const struct thread *t = current;
    const struct aspace *as = READ_ONCE(c->aspace);
    // Only what is loaded here is kept from being taken apart.
    bool ours = as && t->task && READ_ONCE(t->task->aspace) == as;
    *p = (struct user_peek){
        .pt = ours ? &as->pt : NULL,
        .page = PEEK_NO_PAGE,
        .slot = sampler_window(c->id),
    };
}

// Under the window of a sampler that this one interrupted, if any.
static void show(struct user_peek *p, paddr_t frame)
{
    void *entry = leaf_entry(&kernel_pagetable, p->slot);
    u64 value = entry_make(frame, PROT_R | PROT_GLOBAL);
    u64 before = entry_exchange(entry, value);
    if (!p->window_used)
        p->under = before;
    p->window_used = true;
    tlb_flush_page(p->slot);
    p->at = (const u8 *)p->slot;
}

void user_peek_end(struct user_peek *p)
{
    if (!p->window_used)
        return;
    entry_exchange(leaf_entry(&kernel_pagetable, p->slot), p->under);
    tlb_flush_page(p->slot);
}

const u32 *user_peek_other(struct user_peek *p, u32 va, u32 bytes)
{
    u32 page = va & PAGE_MASK;
    if (!p->pt || page >= USER_END || va - page > PAGE_SIZE - bytes)
        return NULL;
    const void *entry = leaf_entry(p->pt, page);
    if (!entry)
        return NULL;
    // Another CPU may be changing it: two halves of different values are not
    // taken for an address.
    u64 e = entry_read(entry);
    barrier();
    if (entry_read(entry) != e || !(e & ENTRY_PRESENT) || !(e & ENTRY_USER))
        return NULL;
    paddr_t frame = e & ENTRY_FRAME;
    if (is_direct(frame))
        p->at = phys_to_virt(frame);
    else
        show(p, frame);
    p->page = page;
    return (const u32 *)(p->at + (va - page));
}
