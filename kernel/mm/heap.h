// The kernel heap: slab caches, and kmalloc over power-of-two caches of them.
// All functions: any context but NMI; they do not sleep; NULL when out of
// memory.
#pragma once

#include "arch/mmu.h"
#include "kernel/sync/spinlock.h"

struct slab_cache {
    const char *name;
    u32 object_size, align;
    // The fields below are private to heap.c.
    struct spinlock lock;
    struct list partial, full, node;
    u32 size; // object_size before it was rounded up
    u32 objects_per_slab, order, slabs, used;
    bool ready;
    struct slab_magazine *magazines; // per CPU
    // Each object has a reference count at refs_offset: the leak check of
    // checked kernels compares it with the pointers it finds.
    bool counted;
    u32 refs_offset;
};
// A static cache, usable at once: SLAB_CACHE(thread_cache, struct thread);
#define SLAB_CACHE(var, type)                                     \
    static struct slab_cache var = { .name = #type,               \
                                     .object_size = sizeof(type), \
                                     .align = __alignof__(type) }
// The same, for objects with a u32 field that counts the pointers to them.
#define SLAB_CACHE_COUNTED(var, type, refs)                       \
    static struct slab_cache var = { .name = #type,               \
                                     .object_size = sizeof(type), \
                                     .align = __alignof__(type),  \
                                     .counted = true,             \
                                     .refs_offset = offsetof(type, refs) }

// The number of CPUs that will run: caches have magazines from now on. Called
// once, before the second CPU runs.
void heap_expect_cpus(u32 cpus);

void *slab_alloc(struct slab_cache *c); // not zeroed
void slab_free(struct slab_cache *c, void *object);

void *kmalloc(size_t size); // up to 1 MiB; aligned to 8 (16 for >= 16)
void *kzalloc(size_t size);
void kfree(void *p); // NULL is fine
char *kstrdup(const char *s);

// Calls fn for each cache (system.slabs).
void slab_for_each(void (*fn)(const struct slab_cache *c, void *arg),
                   void *arg);

// Virtually contiguous kernel memory with an unmapped guard page below it, for
// stacks and large rings. `use`: enum frame_use; zeroed, unless VMAP_UNZEROED
// is added. NULL when out of memory. Does not sleep.
#define VMAP_UNZEROED 0x100
void *vmap_alloc(u32 pages, u32 prot, int use);
void vmap_free(void *va, u32 pages);
// That no memory has, those included that await a flush of the TLBs.
u32 vmap_pages_free(void);
// Maps frames that follow each other, from `base` on, to be read. Takes over
// the caller's reference to each, until vmap_free. NULL: there is no room.
void *vmap_frames(paddr_t base, u32 pages);
// The frame of an allocated page, without a reference for the caller.
struct frame *frame_of_vmap(const void *va);
void *kstack_alloc(void); // KSTACK_SIZE with a guard page; cached
void kstack_free(void *stack);
