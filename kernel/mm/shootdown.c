// Switching of address spaces, and TLB shootdown.
//
// A CPU sets its bit in as->cpus before it loads CR3, and clears it after it
// has loaded another CR3. A CPU that changes page tables passes a full barrier
// between the change and its read of `cpus`: a CPU whose bit it does not see
// loads CR3 later and uses the new page tables.
//
// Lazy TLB: kernel threads run on the page tables that are loaded. A CPU that
// gets a shootdown for page tables that it does not need unloads them, so that
// it gets no further ones.

#include "arch/cpu.h"
#include "kernel/base/log.h"
#include "kernel/base/thread.h"
#include "kernel/mm/area.h"
#include "kernel/mm/aspace.h"

#define SHOOTDOWN_MAX 32u // pages; above, everything is flushed

struct shootdown {
    struct aspace *as;
    u32 addr, pages;
};

static u32 own_bit(void)
{
    return 1u << this_cpu()->id;
}

// Interrupts off. `old` stays valid until this CPU's bit in it is cleared.
static void load(struct aspace *as)
{
    assert(!irqs_enabled());
    struct cpu *c = this_cpu();
    struct aspace *old = c->aspace;
    if (as)
        __atomic_fetch_or(&as->cpus, own_bit(), __ATOMIC_SEQ_CST);
    c->aspace = as;
    pagetable_load(as ? &as->pt : &kernel_pagetable);
    if (old)
        __atomic_fetch_and(&old->cpus, ~own_bit(), __ATOMIC_SEQ_CST);
}

void aspace_switch(struct aspace *as)
{
    u32 flags = irq_save();
    if (as != this_cpu()->aspace)
        load(as);
    irq_restore(flags);
}

static void flush_here(const struct shootdown *s)
{
    if (!s->pages || s->pages > SHOOTDOWN_MAX) {
        tlb_flush_user();
        return;
    }
    for (u32 i = 0; i < s->pages; i++)
        tlb_flush_page(s->addr + i * PAGE_SIZE);
}

static bool needs(const struct aspace *as)
{
    const struct thread_base *t = current_base();
    return t && READ_ONCE(t->aspace) == as;
}

static void shootdown_interrupt(void *arg)
{
    const struct shootdown *s = arg;
    if (this_cpu()->aspace != s->as)
        return;
    if (needs(s->as))
        flush_here(s);
    else
        load(NULL);
}

void tlb_shootdown(struct aspace *as, u32 addr, u32 pages)
{
    assert(as);
    struct shootdown s = { as, addr, pages };
    preempt_disable();
    if (this_cpu()->aspace == as)
        flush_here(&s);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    u32 others = READ_ONCE(as->cpus) & ~own_bit();
    if (others)
        smp_call_mask(others, shootdown_interrupt, &s);
    preempt_enable();
}

static void unload_here(void *arg)
{
    if (this_cpu()->aspace == arg)
        load(NULL);
}

void aspace_unload(struct aspace *as)
{
    preempt_disable();
    u32 flags = irq_save();
    unload_here(as);
    irq_restore(flags);
    u32 others = READ_ONCE(as->cpus);
    if (others)
        smp_call_mask(others, unload_here, as);
    assert(!READ_ONCE(as->cpus));
    preempt_enable();
}
