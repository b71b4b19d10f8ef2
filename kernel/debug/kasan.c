// The address checker (`make KASAN=1`): every access to kernel memory must lie
// within a live object.
//
// Each 8 bytes of the direct map and of vmap have a shadow byte: 0 when all may
// be accessed, 1 to 7 when only the first ones may, else one of enum
// kasan_reason. The compiler calls a function here before each access, and
// surrounds local and global variables with redzones. The owners of memory set
// the shadow of the rest: the slab heap that of the redzones around its
// objects; heap, frame allocator and kernel stacks that of freed memory. A
// freed object waits in a quarantine before its memory is used again.
//
// Checks read the shadow and take no lock: any context, NMI included. Shadow
// bytes belong to the owner of the memory that they describe. A CPU's
// quarantine belongs to that CPU while interrupts are off. Nothing here is
// itself checked.
#ifdef KASAN

#include "kernel/debug/kasan_private.h"

#include "arch/cpu.h"
#include "arch/thread.h"
#include "kernel/base/log.h"
#include "kernel/debug/callers.h"
#include "kernel/debug/track.h"
#include "kernel/mm/frame.h"
#include "kernel/sched/thread.h"
#include "lib/string.h"

#define FILES_MAX 512u
#define QUARANTINE_MAX 256u // objects for each CPU

// Checked bytes of direct map and vmap; 0 before the start and in a report.
static u32 direct_size, vmap_size;

struct kasan_globals kasan_globals[FILES_MAX];
u32 kasan_globals_count;

static struct quarantine {
    u32 next, count; // next: the oldest object, if there is one
    void *objects[QUARANTINE_MAX];
} quarantines[CPU_MAX];

// --- shadow -----------------------------------------------------------------

static ALWAYS_INLINE bool has_shadow(u32 addr)
{
    return addr - KERNEL_BASE < direct_size || addr - VMAP_BASE < vmap_size;
}

void kasan_open(const void *p, size_t n)
{
    u32 addr = (u32)p;
    if (!has_shadow(addr))
        return;
    memset(shadow_of(addr), 0, n / GRANULE);
    if (n % GRANULE)
        *shadow_of(addr + n) = n % GRANULE;
}

void kasan_close(const void *p, size_t n, enum kasan_reason why)
{
    if (has_shadow((u32)p))
        memset(shadow_of((u32)p), why, n / GRANULE);
}

// --- checks, called by compiled code ----------------------------------------

static ALWAYS_INLINE bool is_open(u32 addr, u32 size)
{
    u32 last = addr + size - 1;
    u8 s = *shadow_of(last);
    if (unlikely(s) && (s >= GRANULE || last % GRANULE >= s))
        return false;
    const u8 *end = shadow_of(last);
    for (const u8 *p = shadow_of(addr); p < end; p++) {
        if (*p)
            return false;
    }
    return true;
}

static ALWAYS_INLINE void check(u32 addr, u32 size, bool write, u32 pc)
{
    if (has_shadow(addr) && unlikely(!is_open(addr, size)))
        kasan_report_access(addr, size, write, pc);
}

static ALWAYS_INLINE void check_range(u32 addr, u32 size, bool write, u32 pc)
{
    if (!size || !has_shadow(addr))
        return;
    u32 last = addr + size - 1;
    if (last < addr || !has_shadow(last) || !is_open(addr, size))
        kasan_report_access(addr, size, write, pc);
}

#define CALLER ((u32)__builtin_return_address(0))

#define CHECKS(size)                             \
    void __asan_load##size##_noabort(u32 addr);  \
    void __asan_load##size##_noabort(u32 addr)   \
    {                                            \
        check(addr, size, false, CALLER);        \
    }                                            \
    void __asan_store##size##_noabort(u32 addr); \
    void __asan_store##size##_noabort(u32 addr)  \
    {                                            \
        check(addr, size, true, CALLER);         \
    }

CHECKS(1)
CHECKS(2)
CHECKS(4)
CHECKS(8)
CHECKS(16)

void __asan_loadN_noabort(u32 addr, u32 size);
void __asan_loadN_noabort(u32 addr, u32 size)
{
    check_range(addr, size, false, CALLER);
}

void __asan_storeN_noabort(u32 addr, u32 size);
void __asan_storeN_noabort(u32 addr, u32 size)
{
    check_range(addr, size, true, CALLER);
}

// --- stacks -----------------------------------------------------------------

// The caller of a noreturn function never leaves the frames above it: their
// redzones are cleared here.
void __asan_handle_no_return(void);
void __asan_handle_no_return(void)
{
    u32 at = ALIGN_DOWN(frame_pointer(), GRANULE);
    u32 end = direct_size ? callers_stack_end(at) : 0;
    if (end)
        kasan_open((void *)at, end - at);
}

// Variable-length arrays (clang): `at` is aligned to 32 bytes.
void __asan_alloca_poison(u32 at, u32 size);
void __asan_alloca_poison(u32 at, u32 size)
{
    u32 end = at + ALIGN_UP(size, GRANULE);
    kasan_close((void *)(at - 32), 32, KASAN_ALLOCA_LEFT);
    kasan_open((void *)at, size);
    kasan_close((void *)end, ALIGN_UP(end, 32u) + 32 - end, KASAN_ALLOCA_RIGHT);
}

void __asan_allocas_unpoison(u32 top, u32 bottom);
void __asan_allocas_unpoison(u32 top, u32 bottom)
{
    if (top && top < bottom)
        kasan_open((void *)top, bottom - top);
}

// Shadow of large frames (clang) and of variables that enter or leave scope.
#define SET_SHADOW(value)                              \
    void __asan_set_shadow_##value(u8 *shadow, u32 n); \
    void __asan_set_shadow_##value(u8 *shadow, u32 n)  \
    {                                                  \
        memset(shadow, 0x##value, n);                  \
    }

SET_SHADOW(00)
SET_SHADOW(f1)
SET_SHADOW(f2)
SET_SHADOW(f3)
SET_SHADOW(f5)
SET_SHADOW(f8)

void __asan_poison_stack_memory(u32 at, u32 size);
void __asan_poison_stack_memory(u32 at, u32 size)
{
    kasan_close((void *)at, ALIGN_UP(size, GRANULE), KASAN_STACK_SCOPE);
}

void __asan_unpoison_stack_memory(u32 at, u32 size);
void __asan_unpoison_stack_memory(u32 at, u32 size)
{
    kasan_open((void *)at, size);
}

// --- globals ----------------------------------------------------------------

void __asan_register_globals(const struct kasan_global *list, u32 count);
void __asan_register_globals(const struct kasan_global *list, u32 count)
{
    assert(kasan_globals_count < FILES_MAX);
    kasan_globals[kasan_globals_count++] =
        (struct kasan_globals){ list, count };
    for (const struct kasan_global *g = list; g < list + count; g++) {
        kasan_close((void *)g->addr, g->padded_size, KASAN_GLOBAL);
        kasan_open((void *)g->addr, g->size);
    }
}

void __asan_unregister_globals(const struct kasan_global *list, u32 count);
void __asan_unregister_globals(const struct kasan_global *list UNUSED,
                               u32 count UNUSED)
{
}

static void close_free_frames(void)
{
    for (u32 at = 0; at < direct_size; at += PAGE_SIZE) {
        const struct frame *f = frame_from_paddr(at);
        if (f && f->use == FRAME_FREE && !frame_refs(f))
            kasan_close(phys_to_virt(at), PAGE_SIZE, KASAN_FRAME_FREED);
    }
}

void kasan_start(u32 direct_map_size)
{
    extern void (*const init_array_start[])(void);
    extern void (*const init_array_end[])(void);
    direct_size = direct_map_size;
    vmap_size = VMAP_LIMIT - VMAP_BASE;
    close_free_frames();
    for (u32 i = 0; init_array_start + i < init_array_end; i++)
        init_array_start[i](); // each registers its file's globals
}

void kasan_stop(void)
{
    direct_size = vmap_size = 0;
}

// --- the heap ---------------------------------------------------------------

static void remember(struct kasan_stack *s)
{
    u32 n = callers_walk(__builtin_frame_address(0), s->pcs, KASAN_PCS);
    s->thread = this_cpu()->thread ? current->tid : 0;
    if (n < KASAN_PCS)
        s->pcs[n] = 0;
}

u32 kasan_footprint(u32 size)
{
    return ALIGN_UP(size, GRANULE) + 2 * GRANULE + sizeof(struct kasan_object);
}

void kasan_object_trim(const struct slab_cache *c, void *object, u32 size)
{
    kasan_object(c, object)->size = size;
    kasan_close(object, c->object_size, KASAN_HEAP_REDZONE);
    kasan_open(object, size);
}

void kasan_object_allocated(const struct slab_cache *c, void *object)
{
    struct kasan_object *o = kasan_object(c, object);
    remember(&o->taken);
    o->freed.pcs[0] = 0;
    kasan_object_trim(c, object, c->size);
}

static void *oldest(struct quarantine *q)
{
    void *object = q->objects[q->next];
    track_forget(q->objects[q->next]);
    q->next = (q->next + 1) % QUARANTINE_MAX;
    q->count--;
    return object;
}

void *kasan_quarantine(const struct slab_cache *c, void *object)
{
    struct frame *f = frame_from_va(object);
    u32 slab = (u32)object & ~((PAGE_SIZE << c->order) - 1);
    if (!f || f->use != FRAME_SLAB || f->owner != c ||
        ((u32)object - slab) % c->object_size)
        kasan_report_free(c, object, "wild-free");
    u32 flags = irq_save();
    u8 was = *shadow_of((u32)object);
    kasan_close(object, c->object_size, KASAN_HEAP_FREED);
    if (direct_size && was == KASAN_HEAP_FREED)
        kasan_report_free(c, object, "double-free");
    remember(&kasan_object(c, object)->freed);
    struct quarantine *q = &quarantines[this_cpu()->id];
    void *other = q->count == QUARANTINE_MAX ? oldest(q) : NULL;
    q->objects[(q->next + q->count++) % QUARANTINE_MAX] = object;
    irq_restore(flags);
    return other;
}

void *kasan_release(void)
{
    u32 flags = irq_save();
    struct quarantine *q = &quarantines[this_cpu()->id];
    void *object = q->count ? oldest(q) : NULL;
    irq_restore(flags);
    return object;
}

// Exact only while no other CPU changes its quarantine.
u32 kasan_waiting(const struct slab_cache *c)
{
    u32 n = 0;
    for (u32 cpu = 0; cpu < cpu_count; cpu++) {
        const struct quarantine *q = &quarantines[cpu];
        for (u32 i = 0; i < q->count; i++) {
            void *object =
                READ_ONCE(q->objects[(q->next + i) % QUARANTINE_MAX]);
            // The count may include its place before the first object is there.
            n += object && READ_ONCE(frame_from_va(object)->owner) == c;
        }
    }
    return n;
}

#endif
