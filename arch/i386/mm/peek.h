// Reading the running thread's user memory where nothing may wait or fault: in
// a sample, which may be an NMI's.
//
// A page fault in an NMI handler would end in IRET, which lets the next NMI in
// (SDM vol. 3, 6.7.1). So the page tables are read, and the frame that they
// name through the direct map, or through a window that only the sampler uses.
// The tables stay while this lasts: whoever withdraws one waits for this CPU to
// take an interrupt (kernel/mm/shootdown.c).
#pragma once

#include "arch/cpu.h"
#include "arch/mmu.h"
#include "kernel/mm/aspace.h"
#include "kernel/sched/task.h"

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
// Only what is loaded here is kept from being taken apart.
static ALWAYS_INLINE void user_peek_begin(struct user_peek *p)
{
    const struct task *task = current->task;
    const struct aspace *as = this_cpu_read(aspace);
    bool ours = as && task && READ_ONCE(task->aspace) == as;
    p->pt = ours ? &as->pt : NULL;
    p->page = PEEK_NO_PAGE;
    p->window_used = false;
}
static ALWAYS_INLINE void user_peek_end(struct user_peek *p)
{
    if (unlikely(p->window_used))
        user_peek_close(p);
}
// Shows the page of `va`. False: it is not there.
bool user_peek_page(struct user_peek *p, u32 va);

// The `bytes` at `va`, if they lie in one page and it is present; else NULL.
// What is there may change at any moment.
static ALWAYS_INLINE const u32 *user_peek(struct user_peek *p, u32 va,
                                          u32 bytes)
{
    if (va - p->page >= PAGE_SIZE && !user_peek_page(p, va))
        return NULL;
    u32 offset = va - p->page;
    return likely(offset <= PAGE_SIZE - bytes) ? (const u32 *)(p->at + offset)
                                               : NULL;
}
