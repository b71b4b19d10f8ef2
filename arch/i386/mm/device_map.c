// Mappings of devices' memory, and of the firmware's tables: permanent, one
// behind the other.
//
// Addresses come from the firmware and from devices, and are not trusted (see
// paddr_limit).
// `device_lock` guards the place of the next mapping.
#include "arch/i386/mm/memory.h"
#include "kernel/base/log.h"
#include "kernel/sync/spinlock.h"

#define DEVICE_BASE VMAP_LIMIT
#define DEVICE_END WINDOW_BASE
#define RW (PROT_R | PROT_W | PROT_GLOBAL)

static struct spinlock device_lock = SPINLOCK_INIT("device mappings");
static u32 device_next = DEVICE_BASE;

static void *map_region(paddr_t base, size_t size, u32 prot)
{
    u32 offset = (u32)base & ~PAGE_MASK;
    if (!is_addressable(base, size)) {
        log_printf("memory: what is at %#llx is not mapped: the CPU's page "
                   "tables end at %#llx\n",
                   base, paddr_limit());
        return NULL;
    }
    if (!size || size > DEVICE_END - DEVICE_BASE)
        return NULL;
    u32 length = ALIGN_UP(size + offset, PAGE_SIZE);
    u32 flags = spin_lock_irq(&device_lock);
    u32 va = device_next;
    bool fits = length <= DEVICE_END - va;
    if (fits)
        device_next += length;
    spin_unlock_irq(&device_lock, flags);
    if (!fits)
        return NULL;
    for (u32 done = 0; done < length; done += PAGE_SIZE) {
        int err = pagetable_map(&kernel_pagetable, va + done,
                                base - offset + done, prot);
        assert(!err); // the table exists
    }
    return (void *)(va + offset);
}

void *map_device(paddr_t base, size_t size)
{
    return map_region(base, size, RW | PROT_UNCACHED);
}

void *map_video(paddr_t base, size_t size)
{
    return map_region(base, size, RW | PROT_COMBINING);
}
