// NMI-safe reads of the running thread's user memory, for samples: they neither
// wait nor fault.
//
// A page fault in an NMI handler would end in IRET, which unblocks NMIs (SDM
// vol. 3, 6.7.1). So the reader walks the page tables, and reads the frame
// through the direct map, or through a window that only the sampler uses.
// Tables are not freed while it does: a CPU that removes one waits until this
// CPU has taken an interrupt (kernel/mm/shootdown.c).
#pragma once

#include "arch/cpu.h"
#include "arch/i386/mm/entry.h"
#include "arch/i386/mm/memory.h"
#include "arch/mmu.h"
#include "kernel/base/thread.h"
#include "kernel/mm/aspace.h"

#define PEEK_FRAME_HIGH (u32)(ENTRY_FRAME >> 32)

struct user_peek {
    const struct pagetable *pt; // NULL: no user memory
    const u8 *at;               // NULL: no page is shown
    u32 page;                   // the address of the page at `at`
    u64 under;                  // the window's entry of an interrupted sampler
    bool window_used;
};

void user_peek_close(struct user_peek *p);
// Makes `at` show a frame that is outside of the direct map.
void user_peek_show(struct user_peek *p, paddr_t frame);

// Makes `at` show the page of `va`. False: it is not present. Another CPU may
// be changing the entry: the low half is read again, so that halves of
// different values are not combined into an address.
static ALWAYS_INLINE bool user_peek_page_inline(struct user_peek *p, u32 va)
{
    const u32 wanted = ENTRY_PRESENT | ENTRY_USER;
    if (!p->pt || va >= USER_END)
        return false;
    const u32 *entry = leaf_entry_inline(p->pt, va);
    if (!entry)
        return false;
    u32 low = READ_ONCE(entry[0]);
    u32 high = mmu_pae ? READ_ONCE(entry[1]) & PEEK_FRAME_HIGH : 0;
    if ((low & wanted) != wanted || READ_ONCE(entry[0]) != low)
        return false;
    u32 frame = low & PAGE_MASK;
    if (likely(!high && is_direct(frame)))
        p->at = phys_to_virt(frame);
    else
        user_peek_show(p, (u64)high << 32 | frame);
    ASSUME(p->at);
    p->page = va & PAGE_MASK;
    return true;
}
bool user_peek_page(struct user_peek *p, u32 va);

// The page table to read, or NULL. Only the loaded one is protected from being
// freed; if user mode was interrupted it is the thread's own.
static ALWAYS_INLINE const struct pagetable *user_peek_table(bool user_mode)
{
    const struct aspace *as = this_cpu_read(aspace);
    if (likely(user_mode))
        return &as->pt;
    const struct thread_base *t = current_base();
    return as && t && READ_ONCE(t->aspace) == as ? &as->pt : NULL;
}
// Interrupts are off from begin to end; they nest, since an NMI may occur
// between. Shows the page of `va`, if present. `user_mode`: user mode was
// interrupted.
static ALWAYS_INLINE void user_peek_begin(struct user_peek *p, u32 va,
                                          bool user_mode)
{
    p->pt = user_peek_table(user_mode);
    p->window_used = false;
    if (unlikely(!user_peek_page_inline(p, va)))
        p->at = NULL;
}
static ALWAYS_INLINE void user_peek_end(struct user_peek *p)
{
    if (unlikely(p->window_used))
        user_peek_close(p);
}

const u32 *user_peek_elsewhere(struct user_peek *p, u32 va, u32 bytes);
// The `bytes` at `va`, if they are within one page that is present; else NULL.
// Their content may change at any moment.
static ALWAYS_INLINE const u32 *user_peek(struct user_peek *p, u32 va,
                                          u32 bytes)
{
    u32 offset = va - p->page;
    if (likely(p->at && offset <= PAGE_SIZE - bytes))
        return (const u32 *)(p->at + offset);
    return user_peek_elsewhere(p, va, bytes);
}
