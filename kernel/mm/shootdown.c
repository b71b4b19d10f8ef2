// Switching of address spaces, and TLB shootdown.
//
// A CPU adds itself to as->cpus before it loads CR3, and removes itself after
// it has loaded another CR3. A CPU that changes page tables passes a full
// barrier between the change and its read of `cpus`: a CPU that it does not see
// there loads CR3 later and uses the new page tables.
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

// Interrupts off. `old` stays valid until this CPU is removed from it.
static void load(struct aspace *as)
{
    assert(!irqs_enabled());
    struct cpu *c = this_cpu();
    struct aspace *old = c->aspace;
    if (as)
        __atomic_fetch_or(&as->cpus.words[c->set_word], c->set_bit,
                          __ATOMIC_SEQ_CST);
    c->aspace = as;
    pagetable_load(as ? &as->pt : &kernel_pagetable);
    if (old)
        __atomic_fetch_and(&old->cpus.words[c->set_word], ~c->set_bit,
                           __ATOMIC_SEQ_CST);
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

static bool other_cpus_use(const struct aspace *as)
{
    const struct cpu *c = this_cpu();
    if (likely(cpu_set_words == 1))
        return READ_ONCE(as->cpus.words[0]) & ~c->set_bit;
    return cpu_set_has_other(&as->cpus, c->id);
}

void tlb_shootdown(struct aspace *as, u32 addr, u32 pages)
{
    assert(as);
    struct shootdown s = { as, addr, pages };
    preempt_disable();
    if (this_cpu()->aspace == as)
        flush_here(&s);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (other_cpus_use(as))
        smp_call_set(&as->cpus, shootdown_interrupt, &s);
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
    if (!cpu_set_is_empty(&as->cpus))
        smp_call_set(&as->cpus, unload_here, as);
    assert(cpu_set_is_empty(&as->cpus));
    preempt_enable();
}
