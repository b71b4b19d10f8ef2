// Physical memory: single frames come from per-CPU caches; larger blocks, and
// refills of the caches, from the zones' buddy allocators.
//
// Locking: a zone's lock guards its free lists. A CPU's cache belongs to that
// CPU while interrupts are off. `refs` is atomic.

#include "kernel/mm/frame.h"

#include "kernel/base/log.h"
#include "kernel/debug/callers.h"
#include "kernel/debug/fail_alloc.h"
#include "kernel/debug/kasan.h"
#include "kernel/mm/zone.h"
#include "lib/cpu_memory.h"
#include "lib/string.h"

#define CACHE_ORDER 4u
#define CACHE_BATCH (1u << CACHE_ORDER) // frames per refill and shrink

struct frame *frames;
u32 frame_count;
u32 any_zone;
u64 unmanaged_frames;
struct frame_cache *frame_caches[CPU_MAX];
CPU_MEMORY(frame_caches, 1);

// --- the per-CPU cache; interrupts are off ----------------------------------

static bool for_tasks(enum frame_use use)
{
    return use == FRAME_USER || use == FRAME_FILE;
}

// Memory of tasks is not taken from the reserve: the kernel needs the reserve
// to be able to end a task.
static bool zone_has(const struct zone *z, u32 n, enum frame_use use)
{
    return z->free >= n + (for_tasks(use) ? z->reserve : 0);
}

// The last tenth of each zone is reserved for root, so that one user cannot
// exhaust the machine. No allocation for an ordinary user's task is made from
// it: neither its pages, nor its page tables, nor slabs of any kind. The user's
// system calls fail and its page faults end a task of the user that has most
// memory (kernel/task/oom.c), while root's tasks can still fork, profile and
// kill. So pages need no owner: no account has to follow them through forks,
// sharing and changes of user. While memory is free, the cost is a comparison.
// It is made for each frame, not for each refill, because frames that root
// frees lie in a cache that serves users, too.
static ALWAYS_INLINE bool needs_root_reserve(u32 zone)
{
    const struct zone *z = &zones[zone];
    return unlikely(READ_ONCE(z->free) < z->roots) && !frames_acts_for_root();
}

static NOINLINE bool cache_refill(struct frame_cache *c, u32 zone,
                                  enum frame_use use)
{
    assert(!c->count[zone]);
    struct zone *z = &zones[zone];
    u32 n = 0;
    u32 flags = spin_lock_irq(&z->lock);
    if (zone_has(z, CACHE_BATCH, use) && z->nonempty >> CACHE_ORDER) {
        struct frame *f = buddy_alloc(z, CACHE_ORDER);
        while (n < CACHE_BATCH) {
            c->frames[zone][n] = &f[CACHE_BATCH - 1 - n];
            c->frames[zone][n++]->order = 0;
        }
    } else {
        while (n < CACHE_BATCH && zone_has(z, 1, use))
            c->frames[zone][n++] = buddy_alloc(z, 0);
    }
    spin_unlock_irq(&z->lock, flags);
    WRITE_ONCE(c->count[zone], n);
    return n > 0;
}

static struct frame *cache_pop(struct frame_cache *c, u32 zone,
                               enum frame_use use)
{
    if (unlikely(!c->count[zone]) && !cache_refill(c, zone, use))
        return NULL;
    ADD_ONCE(c->count[zone], -1);
    return c->frames[zone][c->count[zone]];
}

// Returns `n` contiguous frames to the zone as the largest possible aligned
// blocks.
static void free_run(struct zone *z, struct frame *f, u32 n)
{
    while (n) {
        u32 aligned = (u32)__builtin_ctz(frame_number(f) | CACHE_BATCH);
        u32 order = MIN(aligned, 31 - (u32)__builtin_clz(n));
        buddy_free(z, f, order);
        f += 1u << order;
        n -= 1u << order;
    }
}

// How many of these frames are contiguous.
static u32 contiguous(struct frame **frame, u32 count)
{
    u32 n = 1;
    while (n < count && frame[n] == frame[0] + n)
        n++;
    return n;
}

// Returns the oldest frames to the zone, CACHE_BATCH of them. Contiguous
// frames, such as a block of cache_refill that was freed in order, are returned
// as blocks: that saves most of the buddy merges. So a contiguous batch is
// returned up to the end of its block only: the next one is a whole block.
static NOINLINE void cache_shrink(struct frame_cache *c, u32 zone)
{
    assert(c->count[zone] >= CACHE_BATCH);
    struct zone *z = &zones[zone];
    struct frame **frame = c->frames[zone];
    u32 n = contiguous(frame, CACHE_BATCH), count = CACHE_BATCH;
    if (n == CACHE_BATCH)
        n = count -= frame_number(frame[0]) % CACHE_BATCH;
    u32 flags = spin_lock_irq(&z->lock);
    for (u32 i = 0; i < count; n = contiguous(frame + i, count - i)) {
        free_run(z, frame[i], n);
        i += n;
    }
    spin_unlock_irq(&z->lock, flags);
    ADD_ONCE(c->count[zone], -count);
    memmove(frame, frame + count, c->count[zone] * sizeof(struct frame *));
}

static void free_list(struct zone *z, struct frame **list, u32 *count)
{
    u32 flags = spin_lock_irq(&z->lock);
    while (*count) {
        ADD_ONCE(*count, -1);
        buddy_free(z, list[*count], 0);
    }
    spin_unlock_irq(&z->lock, flags);
}

// Returns this CPU's cached frames to the zones, where they can merge to larger
// blocks.
static void cache_drain(struct frame_cache *c)
{
    for (u32 zone = 0; zone < ZONES; zone++)
        free_list(&zones[zone], c->frames[zone], &c->count[zone]);
    free_list(&zones[ZONE_LOW], c->zeroed, &c->zeroed_count);
}

// --- the checkers -----------------------------------------------------------

static ALWAYS_INLINE void remember_caller(struct frame *f UNUSED)
{
#ifdef CHECKED
    f->allocated_by = callers_here();
#endif
}

static ALWAYS_INLINE void open_frames(const struct frame *f, u32 order)
{
    if (KASAN_ON && f->zone == ZONE_LOW)
        kasan_open(frame_va(f), PAGE_SIZE << order);
}

static ALWAYS_INLINE void close_frames(const struct frame *f, u32 order)
{
    if (KASAN_ON && f->zone == ZONE_LOW)
        kasan_close(frame_va(f), PAGE_SIZE << order, KASAN_FRAME_FREED);
}

// --- allocation -------------------------------------------------------------

static struct frame *alloc_block(u32 order, u32 zone, enum frame_use use)
{
    assert(order && order <= ORDER_MAX);
    struct zone *z = &zones[zone];
    struct frame *f = NULL;
    u32 flags = spin_lock_irq(&z->lock);
    if (zone_has(z, 1u << order, use))
        f = buddy_alloc(z, order);
    spin_unlock_irq(&z->lock, flags);
    return f;
}

static NOTRACE struct frame *alloc_from_zone(struct frame_cache *c, u32 order,
                                             u32 zone, enum frame_use use)
{
    if (needs_root_reserve(zone))
        return NULL;
    if (likely(order == 0))
        return cache_pop(c, zone, use);
    return alloc_block(order, zone, use);
}

// Last resort: drains this CPU's cache, whose frames may be the last free ones,
// or prevent a merge to a large block; and tries the low zone too.
static NOINLINE struct frame *alloc_last_resort(struct frame_cache *c,
                                                u32 order, u32 zone,
                                                enum frame_use use)
{
    assert(!irqs_enabled());
    struct frame *f = NULL;
    cache_drain(c);
    if (zone == ZONE_HIGH)
        f = alloc_from_zone(c, order, ZONE_HIGH, use);
    return f ? f : alloc_from_zone(c, order, ZONE_LOW, use);
}

struct frame *frame_alloc(u32 order, u32 flags, enum frame_use use)
{
    assert(order <= ORDER_MAX && use != FRAME_FREE && use < FRAME_USES);
    if (fail_alloc())
        return NULL;
    u32 zone = flags & FRAME_ANY ? any_zone : ZONE_LOW;
    u32 irq = irq_save();
    struct frame_cache *c = this_cpu()->frame_cache;
    struct frame *f = alloc_from_zone(c, order, zone, use);
    if (unlikely(!f))
        f = alloc_last_resort(c, order, zone, use);
    if (likely(f))
        ADD_ONCE(c->by_use[use], 1 << order);
    irq_restore(irq);
    if (unlikely(!f))
        return NULL;
    f->use = (u8)use;
    f->refs = 1;
    remember_caller(f);
    open_frames(f, order);
    if (flags & FRAME_ZERO) {
        for (u32 i = 0; i < 1u << order; i++)
            frame_zero(f + i);
    }
    return f;
}

static void frame_free(struct frame *f)
{
    u32 zone = f->zone, order = f->order;
    close_frames(f, order);
    u32 irq = irq_save();
    struct frame_cache *c = this_cpu()->frame_cache;
    ADD_ONCE(c->by_use[f->use], -(1 << order));
    f->use = FRAME_FREE;
    if (likely(order == 0)) {
        if (unlikely(c->count[zone] == CACHE_MAX))
            cache_shrink(c, zone);
        c->frames[zone][c->count[zone]] = f;
        ADD_ONCE(c->count[zone], 1);
    } else {
        struct zone *z = &zones[zone];
        u32 flags = spin_lock_irq(&z->lock);
        buddy_free(z, f, order);
        spin_unlock_irq(&z->lock, flags);
    }
    irq_restore(irq);
}

static NOINLINE void bad_reference(const struct frame *f, const char *what)
{
    panic("frame %#x: %s while it is free", frame_number(f), what);
}

NOTRACE void frame_ref(struct frame *f)
{
    if (unlikely(!__atomic_fetch_add(&f->refs, 1, __ATOMIC_RELAXED)))
        bad_reference(f, "referenced");
}

void frame_unref(struct frame *f)
{
    // The holder of the only reference is the only one that can change `refs`.
    if (__atomic_load_n(&f->refs, __ATOMIC_ACQUIRE) == 1) {
        f->refs = 0;
        frame_free(f);
        return;
    }
    u32 old = __atomic_fetch_sub(&f->refs, 1, __ATOMIC_ACQ_REL);
    if (old == 1)
        frame_free(f);
    else if (unlikely(old == 0))
        bad_reference(f, "released");
}

u32 frame_refs(const struct frame *f)
{
    return __atomic_load_n(&f->refs, __ATOMIC_ACQUIRE);
}

// --- addresses and contents -------------------------------------------------

NOTRACE paddr_t frame_paddr(const struct frame *f)
{
    assert(f);
    return (paddr_t)frame_number(f) << PAGE_SHIFT;
}

NOTRACE struct frame *frame_from_paddr(paddr_t p)
{
    u32 number = (u32)(p >> PAGE_SHIFT);
    if (unlikely(number >= frame_count || p >> PAGE_SHIFT >> 32))
        return NULL;
    struct frame *f = &frames[number];
    return likely(f->flags & FRAME_MANAGED) ? f : NULL;
}

NOTRACE void *frame_va(const struct frame *f)
{
    assert(f->zone == ZONE_LOW);
    return (void *)((frame_number(f) << PAGE_SHIFT) + KERNEL_BASE);
}

struct frame *frame_from_va(const void *va)
{
    u32 offset = (u32)va - KERNEL_BASE;
    assert(offset < DIRECT_MAP_MAX);
    assert_checked(!is_in_image((u32)va));
    return frame_from_paddr(offset);
}

static void *frame_open(const struct frame *f)
{
    if (likely(f->zone == ZONE_LOW))
        return frame_va(f);
    return window_map(frame_paddr(f));
}

static void frame_close(const struct frame *f, void *va)
{
    if (f->zone != ZONE_LOW)
        window_unmap(va);
}

void frame_copy(struct frame *dst, struct frame *src)
{
    assert(dst != src);
    void *to = frame_open(dst), *from = frame_open(src);
    memcpy(to, from, PAGE_SIZE);
    frame_close(src, from);
    frame_close(dst, to);
}

void frame_zero(struct frame *f)
{
    void *va = frame_open(f);
    memory_fill_words(va, 0, PAGE_SIZE / sizeof(u32));
    frame_close(f, va);
}

void *page_alloc(enum frame_use use)
{
    struct frame *f = NULL;
    if (fail_alloc())
        return NULL;
    u32 irq = irq_save();
    struct frame_cache *c = this_cpu()->frame_cache;
    if (c->zeroed_count && !needs_root_reserve(ZONE_LOW)) {
        ADD_ONCE(c->zeroed_count, -1);
        f = c->zeroed[c->zeroed_count];
        ADD_ONCE(c->by_use[use], 1);
        f->use = (u8)use;
        f->refs = 1;
    }
    irq_restore(irq);
    if (f) {
        remember_caller(f);
        open_frames(f, 0);
    } else {
        f = frame_alloc(0, FRAME_LOW | FRAME_ZERO, use);
    }
    return f ? frame_va(f) : NULL;
}

void page_free(void *page)
{
    frame_unref(frame_from_va(page));
}

NOTRACE void page_free_zeroed(void *page)
{
    struct frame *f = frame_from_va(page);
    assert(f && f->refs == 1 && f->order == 0);
    close_frames(f, 0);
    u32 irq = irq_save();
    struct frame_cache *c = this_cpu()->frame_cache;
    if (likely(c->zeroed_count < ZEROED_MAX)) {
        ADD_ONCE(c->by_use[f->use], -1);
        f->use = FRAME_FREE;
        f->refs = 0;
        c->zeroed[c->zeroed_count] = f;
        ADD_ONCE(c->zeroed_count, 1);
        f = NULL;
    }
    irq_restore(irq);
    if (f)
        frame_unref(f);
}

// --- statistics -------------------------------------------------------------

static u32 free_in(u32 zone)
{
    u32 free = READ_ONCE(zones[zone].free);
    for (u32 cpu = 0; cpu < cpu_count; cpu++) {
        free += READ_ONCE(frame_caches[cpu]->count[zone]);
        if (zone == ZONE_LOW)
            free += READ_ONCE(frame_caches[cpu]->zeroed_count);
    }
    return free;
}

u32 frames_free(void)
{
    return free_in(ZONE_LOW) + free_in(ZONE_HIGH);
}

u32 frames_total(void)
{
    return zones[ZONE_LOW].total + zones[ZONE_HIGH].total;
}

u32 frames_low(void)
{
    return zones[ZONE_LOW].total;
}

bool frames_scarce(void)
{
    u32 free = 0, total = 0;
    for (u32 i = 0; i < ZONES; i++) {
        free += READ_ONCE(zones[i].free);
        total += zones[i].total;
    }
    return free < total / 32;
}

bool frames_exhausted(void)
{
    const struct zone *z = &zones[ZONE_LOW];
    u32 kept = frames_acts_for_root() ? z->reserve : z->roots;
    return READ_ONCE(z->free) < kept + CACHE_BATCH;
}

// Other CPUs may change the counters concurrently. Each counter is read once,
// and `used` is computed as total - free, so that the sums always hold.
void frame_stats(struct frame_stats *out)
{
    memset(out, 0, sizeof(*out));
    out->unavailable = unmanaged_frames;
    for (u32 i = 0; i < ZONES; i++) {
        u32 free = free_in(i);
        out->zone_total[i] = zones[i].total;
        out->zone_free[i] = free;
        out->total += zones[i].total;
        out->free += free;
    }
    out->used = out->total - out->free;
    for (u32 use = FRAME_FREE + 1; use < FRAME_USES; use++) {
        s32 n = 0;
        for (u32 cpu = 0; cpu < cpu_count; cpu++)
            n += READ_ONCE(frame_caches[cpu]->by_use[use]);
        out->by_use[use] = n > 0 ? (u64)n : 0;
    }
    out->by_use[FRAME_FREE] = out->free;
}
