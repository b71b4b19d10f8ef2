// Allocation records of the heap's objects, and poison.
//
// The records of a slab's objects are at its end. A record belongs to the owner
// of the object, or to the code that allocates or frees it: nothing is locked.
//
// Freed objects are filled with POISON, except for the first word, which the
// slab uses. The next allocation of the object checks whether it was written
// to. With KASAN, which sees every access and detects a double free, there is
// no poison.
#ifdef CHECKED

#include "kernel/debug/track.h"

#include "kernel/base/log.h"
#include "kernel/debug/callers.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"

#ifdef KASAN
#define POISONING false
#else
#define POISONING true
#endif

#define POISON 0x6b6b6b6bu

static u32 slab_start(const struct slab_cache *c, u32 va)
{
    return va & ~((PAGE_SIZE << c->order) - 1);
}

static struct track *tracks(const struct slab_cache *c, u32 slab)
{
    return (struct track *)(slab + (PAGE_SIZE << c->order)) -
           c->objects_per_slab;
}

struct track *track_find(const struct slab_cache *c, u32 va, u32 *object)
{
    u32 slab = slab_start(c, va), index = (va - slab) / c->object_size;
    if (index >= c->objects_per_slab)
        return NULL;
    *object = slab + index * c->object_size;
    return &tracks(c, slab)[index];
}

static void poison(const struct slab_cache *c, u32 *object)
{
    for (u32 i = 1; i < c->object_size / sizeof(u32); i++)
        object[i] = POISON;
}

void track_slab(const struct slab_cache *c, void *slab)
{
    struct track *t = tracks(c, (u32)slab);
    for (u32 i = 0; i < c->objects_per_slab; i++) {
        t[i] = (struct track){ .live = 0 };
        if (POISONING)
            poison(c, (u32 *)((u32)slab + i * c->object_size));
    }
}

static void log_callers(const char *what, u16 callers)
{
    if (callers)
        callers_log(what, callers);
}

static NOINLINE NORETURN void report(const struct slab_cache *c,
                                     const void *object, const struct track *t,
                                     const char *what)
{
    log_callers("it was allocated last by", t->allocated_by);
    log_callers("it was freed last by", t->freed_by);
    panic("heap: %s at %p (%s, %u bytes)", what, object, c->name,
          c->object_size);
}

static void check_poison(const struct slab_cache *c, const u32 *object,
                         const struct track *t)
{
    for (u32 i = 1; i < c->object_size / sizeof(u32); i++) {
        if (likely(object[i] == POISON))
            continue;
        log_printf("at offset %u there is %#x instead of %#x\n",
                   (u32)(i * sizeof(u32)), object[i], POISON);
        report(c, object, t, "write to a free object");
    }
}

void track_allocated(const struct slab_cache *c, void *object)
{
    u32 start;
    struct track *t = track_find(c, (u32)object, &start);
    assert(t && start == (u32)object && !t->live);
    if (POISONING)
        check_poison(c, object, t);
    t->live = 1;
    t->allocated_by = callers_here();
}

void track_freed(const struct slab_cache *c, void *object)
{
    u32 start;
    struct track *t = track_find(c, (u32)object, &start);
    if (!POISONING && (!t || !t->live))
        return;                        // KASAN reports the error
    assert(t && start == (u32)object); // else never allocated
    if (!t->live)
        report(c, object, t, "second free of an object");
    t->live = 0;
    t->freed_by = callers_here();
    if (POISONING)
        poison(c, object);
}

#endif
