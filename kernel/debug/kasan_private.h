// Shared by the address checker's two files, kasan.c and kasan_report.c.
#pragma once

#include "arch/mmu.h"
#include "kernel/debug/kasan.h"
#include "kernel/mm/heap.h"

#define GRANULE 8u // bytes per shadow byte

static inline u8 *shadow_of(u32 addr)
{
    return (u8 *)(KASAN_SHADOW + (addr - KERNEL_BASE) / GRANULE);
}

#define KASAN_PCS 8u

struct kasan_stack {
    u32 thread;
    u32 pcs[KASAN_PCS]; // up to the first 0
};

// After every object, at the end of its room in the slab.
struct kasan_object {
    u32 size; // as asked for
    struct kasan_stack taken, freed;
};

static inline struct kasan_object *kasan_object(const struct slab_cache *c,
                                                const void *object)
{
    return (struct kasan_object *)((char *)object + c->object_size) - 1;
}

// Passed by the compilers to __asan_register_globals, as an array for each
// file.
struct kasan_global {
    u32 addr, size, padded_size;
    const char *name, *file;
    u32 has_constructor;
    const void *location;
    u32 odr;
};
struct kasan_globals {
    const struct kasan_global *list;
    u32 count;
};
extern struct kasan_globals kasan_globals[];
extern u32 kasan_globals_count;

// Both end all checking, report and panic.
NORETURN void kasan_report_access(u32 addr, u32 size, bool write, u32 pc);
NORETURN void kasan_report_free(const struct slab_cache *c, const void *object,
                                const char *kind);
void kasan_stop(void);
