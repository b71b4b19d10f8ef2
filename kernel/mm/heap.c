// The kernel heap: slab caches, and kmalloc over power-of-two caches of them.
//
// Layers: per-CPU magazine <-> slabs of the cache <-> frames. A slab is 2^order
// frames. `data` of the first frame holds the slab's free list and its number
// of allocated objects; `owner` of every frame is the cache. kmalloc takes
// sizes above KMALLOC_CACHED directly from the frame allocator; such a frame
// has no owner.
//
// Locking: a CPU's magazines belong to it while its interrupts are off. A
// cache's lock (interrupt-disabling) guards its slabs; caches_lock guards the
// list of caches and the first use of each. Order: caches_lock, a cache's lock,
// frame zones.

#include "kernel/mm/heap.h"

#include "kernel/base/log.h"
#include "kernel/debug/fail_alloc.h"
#include "kernel/debug/kasan.h"
#include "kernel/debug/track.h"
#include "kernel/debug/uninit.h"
#include "kernel/mm/frame.h"
#include "kernel/trace/point.h"
#include "lib/string.h"

#define MAGAZINE_MAX 31u
#define MAGAZINE_BYTES 8192u // a magazine keeps at most this much memory
#define SLAB_ORDER_MAX 3u
#define KMALLOC_MIN 16u
#define KMALLOC_CACHED 2048u
#define KMALLOC_MAX MIB(1)

struct slab_magazine {
    u16 count, limit;
    void *objects[MAGAZINE_MAX];
};

// CPUs that will have magazines. 0: not known yet, so there are none.
static u32 magazine_cpus;

static struct spinlock caches_lock = SPINLOCK_INIT("slab caches");
static struct list caches = LIST_INIT(caches);

// --- slabs: `data` of the first frame ---------------------------------------

// Offset of the first free object + 1 (0: none); number of allocated objects.
#define SLAB_DATA(first, used) ((first) << 16 | (used))
#define SLAB_FIRST(data) ((data) >> 16)
#define SLAB_USED(data) ((data)&0xffff)

static struct frame *slab_of(const struct slab_cache *c, const void *object)
{
    u32 mask = ~((PAGE_SIZE << c->order) - 1);
    struct frame *slab = frame_from_va((void *)((u32)object & mask));
    assert(slab && slab->use == FRAME_SLAB && slab->owner == c);
    return slab;
}

// The link to the next free object is stored in the object.
static NO_KASAN void *slab_pop(struct frame *slab)
{
    u32 data = slab->data;
    u32 *object = (u32 *)((char *)frame_va(slab) + SLAB_FIRST(data) - 1);
    slab->data = SLAB_DATA(*object, SLAB_USED(data) + 1);
    return object;
}

static NO_KASAN void slab_push(struct frame *slab, void *object)
{
    u32 data = slab->data;
    u32 offset = (u32)object - (u32)frame_va(slab);
    assert(SLAB_USED(data));
    *(u32 *)object = SLAB_FIRST(data);
    slab->data = SLAB_DATA(offset + 1, SLAB_USED(data) - 1);
}

static NO_KASAN struct frame *slab_create(struct slab_cache *c)
{
    spin_assert_held(&c->lock);
    struct frame *slab = frame_alloc(c->order, FRAME_LOW, FRAME_SLAB);
    if (!slab)
        return NULL;
    for (u32 i = 0; i < 1u << c->order; i++) {
        slab[i].use = FRAME_SLAB;
        slab[i].owner = c;
    }
    char *base = frame_va(slab);
    u32 next = 0;
    for (u32 i = c->objects_per_slab; i > 0; i--) {
        u32 offset = (i - 1) * c->object_size;
        *(u32 *)(base + offset) = next;
        next = offset + 1;
    }
    slab->data = SLAB_DATA(next, 0u);
    track_slab(c, base);
    kasan_close(base, PAGE_SIZE << c->order, KASAN_HEAP_REDZONE);
    list_push_front(&c->partial, &slab->node);
    c->slabs++;
    return slab;
}

static void slab_destroy(struct slab_cache *c, struct frame *slab)
{
    spin_assert_held(&c->lock);
    list_remove(&slab->node);
    c->slabs--;
    for (u32 i = 1; i < 1u << c->order; i++)
        slab[i].use = FRAME_FREE;
    frame_unref(slab);
}

// --- caches; the cache's lock is held ---------------------------------------

static void *cache_alloc(struct slab_cache *c)
{
    spin_assert_held(&c->lock);
    struct frame *slab;
    if (!list_empty(&c->partial))
        slab = list_first(&c->partial, struct frame, node);
    else if (!(slab = slab_create(c)))
        return NULL;
    void *object = slab_pop(slab);
    c->used++;
    if (!SLAB_FIRST(slab->data)) {
        list_remove(&slab->node);
        list_push_front(&c->full, &slab->node);
    }
    return object;
}

static void cache_free(struct slab_cache *c, void *object)
{
    spin_assert_held(&c->lock);
    struct frame *slab = slab_of(c, object);
    bool was_full = !SLAB_FIRST(slab->data);
    slab_push(slab, object);
    c->used--;
    if (was_full) {
        list_remove(&slab->node);
        list_push_front(&c->partial, &slab->node);
    }
    // Free an empty slab unless it is the only partial one.
    if (!SLAB_USED(slab->data) && c->partial.next != c->partial.prev)
        slab_destroy(c, slab);
}

static void choose_order(struct slab_cache *c)
{
    u32 each = c->object_size + TRACK_SIZE;
    for (c->order = 0; c->order < SLAB_ORDER_MAX; c->order++) {
        u32 size = PAGE_SIZE << c->order;
        if (size / each >= 4 && size % each <= size / 8)
            break;
    }
    c->objects_per_slab = (PAGE_SIZE << c->order) / each;
    assert(c->objects_per_slab);
}

static struct slab_magazine *magazines_create(const struct slab_cache *c)
{
    u32 order = 0, cpus = READ_ONCE(magazine_cpus);
    while (PAGE_SIZE << order < cpus * sizeof(struct slab_magazine))
        order++;
    struct frame *f = cpus ? frame_alloc(order, FRAME_LOW, FRAME_SLAB) : NULL;
    if (!f)
        return NULL;
    f->owner = NULL;
    struct slab_magazine *m = frame_va(f);
    u32 limit = MIN(MAGAZINE_BYTES / c->object_size, MAGAZINE_MAX);
    for (u32 i = 0; i < cpus; i++) {
        m[i].count = 0;
        m[i].limit = (u16)MAX(limit, 2u);
    }
    return m;
}

void heap_expect_cpus(u32 cpus)
{
    assert(!magazine_cpus && cpus && cpus <= CPU_MAX);
    WRITE_ONCE(magazine_cpus, cpus);
}

// First use of a cache. `magazines` is published last, by a release store;
// readers access the rest through the pointer (address dependency), so they see
// it initialized. Without memory for magazines the cache works without them,
// and the next use tries again.
static NOINLINE void cache_prepare(struct slab_cache *c)
{
    u32 flags = spin_lock_irq(&caches_lock);
    if (!c->ready) {
        spin_init(&c->lock, c->name);
        list_init(&c->partial);
        list_init(&c->full);
        c->align = MAX(c->align, 8u);
        c->size = c->object_size;
        c->object_size = ALIGN_UP(kasan_footprint(c->size), c->align);
        choose_order(c);
        list_push_back(&caches, &c->node);
        WRITE_ONCE(c->ready, true);
    }
    if (!c->magazines)
        __atomic_store_n(&c->magazines, magazines_create(c), __ATOMIC_RELEASE);
    spin_unlock_irq(&caches_lock, flags);
}

// Written by the magazine's CPU, with interrupts off; read by other CPUs
// (in_magazines).
static ALWAYS_INLINE u16 change_count(struct slab_magazine *m, int by)
{
    u16 count = (u16)(m->count + by);
    WRITE_ONCE(m->count, count);
    return count;
}

// --- slow paths; interrupts are off -----------------------------------------

static NOINLINE void *alloc_slow(struct slab_cache *c)
{
    if (!READ_ONCE(c->magazines))
        cache_prepare(c);
    struct slab_magazine *m = READ_ONCE(c->magazines);
    u32 flags = spin_lock_irq(&c->lock);
    void *object = cache_alloc(c);
    if (object && m) {
        m += this_cpu()->id;
        void *extra;
        while (m->count < m->limit / 2 && !list_empty(&c->partial) &&
               (extra = cache_alloc(c)))
            m->objects[change_count(m, 1) - 1] = extra;
    }
    spin_unlock_irq(&c->lock, flags);
    return object;
}

static NOINLINE void free_slow(struct slab_cache *c, void *object)
{
    struct slab_magazine *m = READ_ONCE(c->magazines);
    u32 flags = spin_lock_irq(&c->lock);
    cache_free(c, object);
    if (m) {
        m += this_cpu()->id;
        while (m->count > m->limit / 2)
            cache_free(c, m->objects[change_count(m, -1)]);
    }
    spin_unlock_irq(&c->lock, flags);
}

static ALWAYS_INLINE void *alloc_fast(struct slab_cache *c)
{
    void *object = NULL;
    u32 flags = irq_save();
    struct slab_magazine *m = READ_ONCE(c->magazines);
    if (likely(m)) {
        m += this_cpu()->id;
        if (likely(m->count))
            object = m->objects[change_count(m, -1)];
    }
    if (unlikely(!object))
        object = alloc_slow(c);
    irq_restore(flags);
    return object;
}

static ALWAYS_INLINE void free_fast(struct slab_cache *c, void *object)
{
    u32 flags = irq_save();
    struct slab_magazine *m = READ_ONCE(c->magazines);
    if (likely(m))
        m += this_cpu()->id;
    if (likely(m) && likely(m->count < m->limit))
        m->objects[change_count(m, 1) - 1] = object;
    else
        free_slow(c, object);
    irq_restore(flags);
}

static struct slab_cache *cache_of(const void *object)
{
    return frame_from_va(object)->owner;
}

static NOINLINE void empty_quarantine(void)
{
    void *object;
    while ((object = kasan_release()))
        free_fast(cache_of(object), object);
}

// Not in line, nor is tell_and_free: while nobody wants the events, they cost
// the NOPs and no register.
static NOINLINE void *tell_allocated(void *object)
{
    TRACE_IF(heap_alloc, object, .object = (u32)object,
             .bytes = cache_of(object)->size);
    return object;
}

void *slab_alloc(struct slab_cache *c)
{
    if (fail_alloc())
        return NULL;
    void *object = alloc_fast(c);
    if (KASAN_ON && !object) {
        empty_quarantine();
        object = alloc_fast(c);
    }
    if (KASAN_ON && object)
        kasan_object_allocated(c, object);
    if (CHECKED_ON && object)
        track_allocated(c, object);
    if (KASAN_ON && object)
        uninit_fill(object, ALIGN_UP(c->size, sizeof(u32)));
    return trace_wanted(heap_alloc) ? tell_allocated(object) : object;
}

static ALWAYS_INLINE void free_object(struct slab_cache *c, void *object)
{
    track_freed(c, object);
    if (!KASAN_ON) {
        free_fast(c, object);
        return;
    }
    object = kasan_quarantine(c, object);
    if (object)
        free_fast(cache_of(object), object);
    if (frames_scarce())
        empty_quarantine();
}

static NOINLINE void tell_and_free(struct slab_cache *c, void *object)
{
    TRACE(heap_free, .object = (u32)object, .bytes = c->size);
    free_object(c, object);
}

void slab_free(struct slab_cache *c, void *object)
{
    if (trace_wanted(heap_free))
        tell_and_free(c, object);
    else
        free_object(c, object);
}

// --- kmalloc ----------------------------------------------------------------

#define KMALLOC_CACHE(size)                                          \
    {                                                                \
        .name = "kmalloc-" #size, .object_size = size, .align = size \
    }

static struct slab_cache kmalloc_caches[] = {
    KMALLOC_CACHE(16),   KMALLOC_CACHE(32),   KMALLOC_CACHE(64),
    KMALLOC_CACHE(128),  KMALLOC_CACHE(256),  KMALLOC_CACHE(512),
    KMALLOC_CACHE(1024), KMALLOC_CACHE(2048),
};

// The number of bits of n: 2^bits_of(n - 1) is the least power of two >= n.
static u32 bits_of(u32 n)
{
    return n ? 32 - (u32)__builtin_clz(n) : 0;
}

static void *large_alloc(size_t size)
{
    assert(size);
    if (size > KMALLOC_MAX)
        return NULL;
    u32 order = bits_of((size - 1) >> PAGE_SHIFT);
    struct frame *f = frame_alloc(order, FRAME_LOW, FRAME_SLAB);
    if (!f)
        return NULL;
    f->owner = NULL;
    uninit_fill(frame_va(f), PAGE_SIZE << order);
    TRACE(heap_alloc, .object = (u32)frame_va(f), .bytes = PAGE_SIZE << order);
    return frame_va(f);
}

void *kmalloc(size_t size)
{
    if (unlikely(size > KMALLOC_CACHED))
        return large_alloc(size);
    u32 bits = bits_of((MAX(size, KMALLOC_MIN) - 1));
    struct slab_cache *c = &kmalloc_caches[bits - bits_of(KMALLOC_MIN - 1)];
    void *p = slab_alloc(c);
    if (KASAN_ON && p)
        kasan_object_trim(c, p, size);
    return p;
}

void *kzalloc(size_t size)
{
    void *p = kmalloc(size);
    if (p)
        memset(p, 0, size);
    return p;
}

void kfree(void *p)
{
    if (!p)
        return;
    struct frame *f = frame_from_va(p);
    assert(f && f->use == FRAME_SLAB);
    if (f->owner) {
        slab_free(f->owner, p);
        return;
    }
    assert(!((u32)p & (PAGE_SIZE - 1)));
    TRACE(heap_free, .object = (u32)p, .bytes = PAGE_SIZE << f->order);
    frame_unref(f);
}

char *kstrdup(const char *s)
{
    size_t size = strlen(s) + 1;
    char *copy = kmalloc(size);
    if (copy)
        memcpy(copy, s, size);
    return copy;
}

// --- statistics -------------------------------------------------------------

// Objects in magazines are not in use. The number is exact only if no other CPU
// changes its count concurrently.
static u32 in_magazines(const struct slab_cache *c)
{
    const struct slab_magazine *m = READ_ONCE(c->magazines);
    u32 n = 0;
    for (u32 i = 0; m && i < magazine_cpus; i++)
        n += READ_ONCE(m[i].count);
    return n;
}

// Caches are only added, at the end, and never removed.
static struct slab_cache *cache_after(struct slab_cache *c)
{
    u32 flags = spin_lock_irq(&caches_lock);
    struct list *next = c ? c->node.next : caches.next;
    spin_unlock_irq(&caches_lock, flags);
    return next == &caches ? NULL : list_entry(next, struct slab_cache, node);
}

// Takes both locks: `magazines` and `ready` are guarded by caches_lock.
static struct slab_cache copy_of(struct slab_cache *c)
{
    u32 flags = spin_lock_irq(&caches_lock);
    spin_lock(&c->lock);
    struct slab_cache copy = *c;
    spin_unlock(&c->lock);
    spin_unlock_irq(&caches_lock, flags);
    return copy;
}

void slab_for_each(void (*fn)(const struct slab_cache *c, void *arg), void *arg)
{
    for (struct slab_cache *c = cache_after(NULL); c; c = cache_after(c)) {
        struct slab_cache copy = copy_of(c);
        u32 idle = in_magazines(c) + kasan_waiting(c);
        copy.used -= MIN(idle, copy.used);
        fn(&copy, arg);
    }
}
