// Reading the running thread's user memory where nothing may wait or fault: in
// a sample, which may be an NMI's.
//
// A page fault in an NMI handler would end in IRET, which lets the next NMI in
// (SDM vol. 3, 6.7.1). So the page tables are read, and the frame that they
// name through the direct map, or through a window that only the sampler uses.
// The tables stay while this lasts: whoever withdraws one waits for this CPU to
// take an interrupt (kernel/mm/shootdown.c).
#pragma once

#include "arch/mmu.h"

#define PEEK_NO_PAGE USER_END

struct user_peek {
    const struct pagetable *pt; // NULL: there is no user memory
    u32 page;                   // whose frame `at` shows; PEEK_NO_PAGE: none
    const u8 *at;
    u64 under; // what an interrupted sampler's window showed
    bool window_used;
};

void user_peek_close(struct user_peek *p);
// Interrupts are off from begin to end. They nest: an NMI may come between.
void user_peek_begin(struct user_peek *p);
static ALWAYS_INLINE void user_peek_end(struct user_peek *p)
{
    if (unlikely(p->window_used))
        user_peek_close(p);
}
// user_peek, in another page than the last.
const u32 *user_peek_other(struct user_peek *p, u32 va, u32 bytes);

// The `bytes` at `va`, if they lie in one page and it is present; else NULL.
// What is there may change at any moment.
static ALWAYS_INLINE const u32 *user_peek(struct user_peek *p, u32 va,
                                          u32 bytes)
{
    u32 offset = va - p->page;
    if (likely(offset <= PAGE_SIZE - bytes))
        return (const u32 *)(p->at + offset);
    return user_peek_other(p, va, bytes);
}
