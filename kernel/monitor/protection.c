// system.protection: what the page tables of the kernel and of all tasks allow.
//
// Entries are read without a lock while other CPUs change them. An entry that
// seems to allow too much is read again, because its two halves may have been
// read at different times.

#include "arch/cpu.h"
#include "arch/mmu.h"
#include "kernel/monitor/sysinfo.h"
#include "kernel/monitor/sysinfo_values.h"
#include "kernel/task/task.h"

static bool is_both(const struct mapping *m)
{
    return (m->prot & (PROT_W | PROT_X)) == (PROT_W | PROT_X);
}

static void add_pages(struct sysinfo_protection *out, const struct mapping *m,
                      u32 pages)
{
    out->kernel += pages;
    out->kernel_executable += m->prot & PROT_X ? pages : 0;
    out->kernel_both += is_both(m) ? pages : 0;
    out->kernel_user += m->prot & PROT_USER ? pages : 0;
}

static int add_kernel_page(u32 va, void *entry UNUSED, const struct mapping *m,
                           void *arg)
{
    struct mapping again = *m;
    bool mapped = true;
    if (is_both(m) || m->prot & PROT_USER) {
        barrier();
        mapped = pagetable_lookup(&kernel_pagetable, va, &again);
    }
    if (mapped)
        add_pages(arg, &again, 1);
    return 0;
}

static void add_kernel(struct sysinfo_protection *out)
{
    u32 va = KERNEL_BASE, end;
    do { // up to the end of the address space
        struct mapping m;
        if (pagetable_large(&kernel_pagetable, va, &m, &end))
            add_pages(out, &m, (end - va) / PAGE_SIZE);
        else
            pagetable_walk(&kernel_pagetable, va, end, add_kernel_page, out);
    } while ((va = end));
}

static int add_page(u32 va UNUSED, void *entry UNUSED, const struct mapping *m,
                    void *arg)
{
    struct sysinfo_protection *out = arg;
    out->user++;
    out->user_executable += (m->prot & PROT_X) != 0;
    out->user_both += is_both(m);
    return 0;
}

static void add_task(struct task *t, struct sysinfo_protection *out)
{
    struct aspace *as = task_aspace(t);
    if (!as)
        return;
    mutex_lock(&as->lock);
    pagetable_walk(&as->pt, 0, USER_END, add_page, out);
    mutex_unlock(&as->lock);
    aspace_unref(as);
}

void sysinfo_fill_protection(struct sysinfo_protection *out)
{
    struct task *t = NULL;
    *out = (struct sysinfo_protection){
        .forbids_execution = mmu_forbids_execution(),
    };
    add_kernel(out);
    while ((t = task_walk(t, 0)))
        add_task(t, out);
}

static int make_protection(struct chain *out, u32 number UNUSED)
{
    struct sysinfo_protection *record = chain_add(out);
    if (record)
        sysinfo_fill_protection(record);
    return 0;
}

static u32 one(void)
{
    return 1;
}

SYSINFO_NODE(protection, .path = "system.protection",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_PROTECTION),
             .make = make_protection, .count = one, .restricted = true);
