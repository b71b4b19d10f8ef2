// Physical memory: a buddy allocator for each zone, and in front of it a cache
// of single frames on each CPU.
//
// One struct frame for each frame below `frame_count`, in an array that
// frame_init puts into the low zone; a frame's number is its index. Frames that
// are not RAM (or never handed out) lack FRAME_MANAGED.
//
// Locking: a zone's lock guards its free lists. A CPU's cache belongs to that
// CPU while interrupts are off. `refs` is atomic.

#include "kernel/mm/frame.h"

#include "arch/boot.h"
#include "arch/cpu.h"
#include "kernel/init/log.h"
#include "kernel/sync/spinlock.h"
#include "lib/string.h"

#define FRAME_MANAGED 1u // flags: RAM that is ours
#define FRAME_BLOCK 2u   // flags: first frame of a free buddy block

#define ORDERS 11u // blocks of 4 KiB to 4 MiB
#define ORDER_MAX (ORDERS - 1)
#define CACHE_MAX 32u // frames that a CPU keeps of each zone
#define CACHE_ORDER 4u
#define CACHE_BATCH (1u << CACHE_ORDER) // moved between cache and zone at once
#define ZEROED_MAX 16u
#define RESERVE_MAX 256u

// Real-mode memory: the BIOS's data and the page that CPUs start up in.
#define FIRST_PADDR 0x10000u
#define PAE_LIMIT (1ull << 36)

enum { ZONE_LOW, ZONE_HIGH, ZONES };

struct zone {
    struct spinlock lock;
    u32 nonempty; // bit n: there are free blocks of order n
    struct list blocks[ORDERS];
    u32 total, free; // frames; `free` without those in the CPUs' caches
    u32 reserve;     // the last ones are not for tasks' memory
};

struct frame_cache {
    u32 count[ZONES];
    struct frame *frames[ZONES][CACHE_MAX];
    u32 zeroed_count; // low frames that came back full of zeros
    struct frame *zeroed[ZEROED_MAX];
    s32 by_use[FRAME_USES]; // allocated minus freed here: the sum counts
};

static struct frame *frames;
static u32 frame_count;
static struct zone zones[ZONES] = {
    { .lock = SPINLOCK_INIT("low frames") },
    { .lock = SPINLOCK_INIT("high frames") },
};
static struct frame_cache caches[CPU_MAX];
static u32 any_zone; // where FRAME_ANY begins: the high zone if there is one
static u64 unmanaged_frames;

static u32 frame_number(const struct frame *f)
{
    return (u32)(f - frames);
}

// --- the buddy allocator; the zone is locked ---------------------------------

static void block_insert(struct zone *z, struct frame *f, u32 order)
{
    f->flags |= FRAME_BLOCK;
    f->order = (u8)order;
    list_push_front(&z->blocks[order], &f->node);
    z->nonempty |= 1u << order;
}

static void block_remove(struct zone *z, struct frame *f)
{
    f->flags &= (u8)~FRAME_BLOCK;
    f->node.prev->next = f->node.next;
    f->node.next->prev = f->node.prev;
    if (list_empty(&z->blocks[f->order]))
        z->nonempty &= ~(1u << f->order);
}

static struct frame *buddy_take(struct zone *z, u32 order)
{
    u32 fitting = z->nonempty >> order;
    if (!fitting)
        return NULL;
    u32 have = order + (u32)__builtin_ctz(fitting);
    struct frame *f = list_first(&z->blocks[have], struct frame, node);
    block_remove(z, f);
    while (have > order) {
        have--;
        block_insert(z, f + (1u << have), have);
    }
    f->order = (u8)order;
    z->free -= 1u << order;
    return f;
}

// The array's size is a multiple of the largest block, so a buddy's entry
// always exists. Zones meet at such a multiple too.
static void buddy_give(struct zone *z, struct frame *f, u32 order)
{
    u32 number = frame_number(f);
    z->free += 1u << order;
    for (; order < ORDER_MAX; order++) {
        struct frame *buddy = &frames[number ^ (1u << order)];
        if (!(buddy->flags & FRAME_BLOCK) || buddy->order != order)
            break;
        block_remove(z, buddy);
        number &= ~(1u << order);
    }
    block_insert(z, &frames[number], order);
}

// --- the CPU's cache; interrupts are off
// ---------------------------------------

static bool for_tasks(enum frame_use use)
{
    return use == FRAME_USER || use == FRAME_FILE;
}

// Tasks get no memory of the reserve: with it the kernel can still end one.
static bool zone_has(const struct zone *z, u32 n, enum frame_use use)
{
    return z->free >= n + (for_tasks(use) ? z->reserve : 0);
}

static NOINLINE bool cache_refill(struct frame_cache *c, u32 zone,
                                  enum frame_use use)
{
    struct zone *z = &zones[zone];
    u32 n = 0;
    u32 flags = spin_lock_irq(&z->lock);
    if (zone_has(z, CACHE_BATCH, use) && z->nonempty >> CACHE_ORDER) {
        struct frame *f = buddy_take(z, CACHE_ORDER);
        while (n < CACHE_BATCH) {
            c->frames[zone][n] = &f[CACHE_BATCH - 1 - n];
            c->frames[zone][n++]->order = 0;
        }
    } else {
        while (n < CACHE_BATCH && zone_has(z, 1, use))
            c->frames[zone][n++] = buddy_take(z, 0);
    }
    spin_unlock_irq(&z->lock, flags);
    c->count[zone] = n;
    return n > 0;
}

static struct frame *cache_take(struct frame_cache *c, u32 zone,
                                enum frame_use use)
{
    if (unlikely(!c->count[zone]) && !cache_refill(c, zone, use))
        return NULL;
    return c->frames[zone][--c->count[zone]];
}

static NOINLINE void cache_shrink(struct frame_cache *c, u32 zone)
{
    struct zone *z = &zones[zone];
    u32 flags = spin_lock_irq(&z->lock);
    for (u32 i = 0; i < CACHE_BATCH; i++)
        buddy_give(z, c->frames[zone][i], 0);
    spin_unlock_irq(&z->lock, flags);
    c->count[zone] -= CACHE_BATCH;
    memmove(c->frames[zone], c->frames[zone] + CACHE_BATCH,
            c->count[zone] * sizeof(struct frame *));
}

static void give_all(struct zone *z, struct frame **list, u32 *count)
{
    u32 flags = spin_lock_irq(&z->lock);
    while (*count)
        buddy_give(z, list[--*count], 0);
    spin_unlock_irq(&z->lock, flags);
}

// Gives this CPU's cached frames back, so that they can join larger blocks.
static void cache_drain(struct frame_cache *c)
{
    for (u32 zone = 0; zone < ZONES; zone++)
        give_all(&zones[zone], c->frames[zone], &c->count[zone]);
    give_all(&zones[ZONE_LOW], c->zeroed, &c->zeroed_count);
}

// --- allocation
// ------------------------------------------------------------------

static struct frame *take_block(u32 order, u32 zone, enum frame_use use)
{
    struct zone *z = &zones[zone];
    struct frame *f = NULL;
    u32 flags = spin_lock_irq(&z->lock);
    if (zone_has(z, 1u << order, use))
        f = buddy_take(z, order);
    spin_unlock_irq(&z->lock, flags);
    return f;
}

static struct frame *take(struct frame_cache *c, u32 order, u32 zone,
                          enum frame_use use)
{
    if (likely(order == 0))
        return cache_take(c, zone, use);
    return take_block(order, zone, use);
}

// What this CPU has cached may be all that is left, or what keeps a large block
// from being whole.
static NOINLINE struct frame *take_last(struct frame_cache *c, u32 order,
                                        u32 zone, enum frame_use use)
{
    struct frame *f = NULL;
    cache_drain(c);
    if (zone == ZONE_HIGH)
        f = take(c, order, ZONE_HIGH, use);
    return f ? f : take(c, order, ZONE_LOW, use);
}

struct frame *frame_alloc(u32 order, u32 flags, enum frame_use use)
{
    assert(order <= ORDER_MAX && use != FRAME_FREE && use < FRAME_USES);
    u32 zone = flags & FRAME_ANY ? any_zone : ZONE_LOW;
    u32 irq = irq_save();
    struct frame_cache *c = this_cpu()->frame_cache;
    struct frame *f = take(c, order, zone, use);
    if (unlikely(!f))
        f = take_last(c, order, zone, use);
    if (likely(f))
        c->by_use[use] += 1 << order;
    irq_restore(irq);
    if (unlikely(!f))
        return NULL;
    f->use = (u8)use;
    f->refs = 1;
    if (flags & FRAME_ZERO) {
        for (u32 i = 0; i < 1u << order; i++)
            frame_zero(f + i);
    }
    return f;
}

static void frame_free(struct frame *f)
{
    u32 zone = f->zone, order = f->order;
    u32 irq = irq_save();
    struct frame_cache *c = this_cpu()->frame_cache;
    c->by_use[f->use] -= 1 << order;
    f->use = FRAME_FREE;
    if (likely(order == 0)) {
        if (unlikely(c->count[zone] == CACHE_MAX))
            cache_shrink(c, zone);
        c->frames[zone][c->count[zone]++] = f;
    } else {
        struct zone *z = &zones[zone];
        u32 flags = spin_lock_irq(&z->lock);
        buddy_give(z, f, order);
        spin_unlock_irq(&z->lock, flags);
    }
    irq_restore(irq);
}

static NOINLINE void bad_reference(const struct frame *f, const char *what)
{
    panic("frame %#x: %s while it is free", frame_number(f), what);
}

void frame_ref(struct frame *f)
{
    if (unlikely(!__atomic_fetch_add(&f->refs, 1, __ATOMIC_RELAXED)))
        bad_reference(f, "referenced");
}

void frame_unref(struct frame *f)
{
    // Whoever holds the only reference is alone: nobody else can change it.
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

// --- addresses and contents
// ------------------------------------------------------

paddr_t frame_paddr(const struct frame *f)
{
    return (paddr_t)frame_number(f) << PAGE_SHIFT;
}

struct frame *frame_from_paddr(paddr_t p)
{
    u32 number = (u32)(p >> PAGE_SHIFT);
    if (unlikely(number >= frame_count || p >> PAGE_SHIFT >> 32))
        return NULL;
    struct frame *f = &frames[number];
    return likely(f->flags & FRAME_MANAGED) ? f : NULL;
}

void *frame_va(const struct frame *f)
{
    assert(f->zone == ZONE_LOW);
    return (void *)((frame_number(f) << PAGE_SHIFT) + KERNEL_BASE);
}

struct frame *frame_from_va(const void *va)
{
    u32 offset = (u32)va - KERNEL_BASE;
    assert(offset < DIRECT_MAP_MAX);
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
    void *to = frame_open(dst), *from = frame_open(src);
    memcpy(to, from, PAGE_SIZE);
    frame_close(src, from);
    frame_close(dst, to);
}

void frame_zero(struct frame *f)
{
    void *va = frame_open(f);
    void *to = va;
    u32 words = PAGE_SIZE / sizeof(u32);
    __asm__ volatile("rep stosl" : "+D"(to), "+c"(words) : "a"(0) : "memory");
    frame_close(f, va);
}

void *page_alloc(enum frame_use use)
{
    struct frame *f = NULL;
    u32 irq = irq_save();
    struct frame_cache *c = this_cpu()->frame_cache;
    if (c->zeroed_count) {
        f = c->zeroed[--c->zeroed_count];
        c->by_use[use]++;
        f->use = (u8)use;
        f->refs = 1;
    }
    irq_restore(irq);
    if (!f)
        f = frame_alloc(0, FRAME_LOW | FRAME_ZERO, use);
    return f ? frame_va(f) : NULL;
}

void page_free(void *page)
{
    frame_unref(frame_from_va(page));
}

void page_free_zeroed(void *page)
{
    struct frame *f = frame_from_va(page);
    assert(f && f->refs == 1 && f->order == 0);
    u32 irq = irq_save();
    struct frame_cache *c = this_cpu()->frame_cache;
    if (likely(c->zeroed_count < ZEROED_MAX)) {
        c->by_use[f->use]--;
        f->use = FRAME_FREE;
        f->refs = 0;
        c->zeroed[c->zeroed_count++] = f;
        f = NULL;
    }
    irq_restore(irq);
    if (f)
        frame_unref(f);
}

// --- statistics
// --------------------------------------------------------------------

bool frames_scarce(void)
{
    u32 free = 0, total = 0;
    for (u32 i = 0; i < ZONES; i++) {
        free += READ_ONCE(zones[i].free);
        total += zones[i].total;
    }
    return free < total / 32;
}

// Other CPUs may be changing the counters; each is read once, and used is what
// is not free, so that the sums hold at any time.
void frame_stats(struct frame_stats *out)
{
    memset(out, 0, sizeof(*out));
    out->unavailable = unmanaged_frames;
    for (u32 i = 0; i < ZONES; i++) {
        u32 free = READ_ONCE(zones[i].free);
        for (u32 cpu = 0; cpu < cpu_count; cpu++)
            free += READ_ONCE(caches[cpu].count[i]);
        for (u32 cpu = 0; i == ZONE_LOW && cpu < cpu_count; cpu++)
            free += READ_ONCE(caches[cpu].zeroed_count);
        out->zone_total[i] = zones[i].total;
        out->zone_free[i] = free;
        out->total += zones[i].total;
        out->free += free;
    }
    out->used = out->total - out->free;
    for (u32 use = FRAME_FREE + 1; use < FRAME_USES; use++) {
        s32 n = 0;
        for (u32 cpu = 0; cpu < cpu_count; cpu++)
            n += READ_ONCE(caches[cpu].by_use[use]);
        out->by_use[use] = n > 0 ? (u64)n : 0;
    }
    out->by_use[FRAME_FREE] = out->free;
}

// --- start-up
// ----------------------------------------------------------------------

struct range {
    u64 start, end; // page-aligned
};

static struct range pages_touched(paddr_t base, u64 size)
{
    return (struct range){ ALIGN_DOWN(base, (u64)PAGE_SIZE),
                           ALIGN_UP(base + size, (u64)PAGE_SIZE) };
}

static struct range kernel_image(void)
{
    extern char kernel_end[];
    paddr_t base = virt_to_phys((void *)KERNEL_LOAD);
    return pages_touched(base, virt_to_phys(kernel_end) - base);
}

// What boot-time range number `i` is taken by something: the kernel's image,
// then the modules. False when there are no more.
static bool taken_range(u32 i, struct range *out)
{
    if (i > boot_info.module_count)
        return false;
    if (i == 0) {
        *out = kernel_image();
    } else {
        const struct boot_module *m = &boot_info.modules[i - 1];
        *out = pages_touched(m->base, m->size);
    }
    return true;
}

// The part of a usable region that lies in [FIRST_PADDR, limit), whole frames.
static bool usable_range(u32 i, u64 limit, struct range *out)
{
    const struct boot_region *r = &boot_info.regions[i];
    u64 start = ALIGN_UP(MAX(r->base, FIRST_PADDR), (u64)PAGE_SIZE);
    u64 end = ALIGN_DOWN(MIN(r->base + r->size, limit), (u64)PAGE_SIZE);
    *out = (struct range){ start, end };
    return r->usable && start < end;
}

// The lowest free place for `size` bytes in [start, end), or 0.
static u64 place_in(struct range r, u64 size)
{
    u64 at = r.start;
    struct range taken;
    for (u32 i = 0; taken_range(i, &taken); i++) {
        if (at < taken.end && taken.start < at + size) {
            at = taken.end;
            i = (u32)-1; // moved: look at all of them again
        }
    }
    return at + size <= r.end ? at : 0;
}

static u64 find_place(u64 size)
{
    struct range r;
    for (u32 i = 0; i < boot_info.region_count; i++) {
        u64 at = 0;
        if (usable_range(i, DIRECT_MAP_MAX, &r))
            at = place_in(r, size);
        if (at)
            return at;
    }
    panic("no room for the frame table (%llu KiB)", size / 1024);
}

// RAM ends here for us: the paging mode's reach, and no more frames than a
// table in a quarter of the low zone can describe.
static u64 memory_limit(void)
{
    u64 table = DIRECT_MAP_MAX / 4 / sizeof(struct frame);
    u64 limit = cpu_features.pae ? PAE_LIMIT : 1ull << 32;
    return MIN(limit, table << PAGE_SHIFT);
}

static u64 memory_end(u64 limit)
{
    u64 end = 0;
    struct range r;
    for (u32 i = 0; i < boot_info.region_count; i++) {
        if (usable_range(i, limit, &r))
            end = MAX(end, r.end);
    }
    return end;
}

static void manage(struct range r)
{
    for (u64 p = r.start; p < r.end; p += PAGE_SIZE) {
        struct frame *f = &frames[(u32)(p >> PAGE_SHIFT)];
        f->flags = FRAME_MANAGED;
        f->zone = p < DIRECT_MAP_MAX ? ZONE_LOW : ZONE_HIGH;
        zones[f->zone].total++;
    }
}

// One reference for each range that covers a frame: a module's last page may be
// the next one's first.
static void reserve(struct range r)
{
    for (u64 p = r.start; p < r.end; p += PAGE_SIZE) {
        struct frame *f = frame_from_paddr(p);
        if (!f)
            continue;
        if (f->refs++ == 0) {
            f->use = FRAME_KERNEL;
            caches[0].by_use[FRAME_KERNEL]++;
        }
    }
}

static void free_unreserved(struct range r)
{
    u32 end = (u32)(r.end >> PAGE_SHIFT);
    for (u32 n = (u32)(r.start >> PAGE_SHIFT); n < end;) {
        u32 order = 0;
        if (frames[n].refs) {
            n++;
            continue;
        }
        while (order < ORDER_MAX && !(n & (1u << order)) &&
               n + (2u << order) <= end) {
            u32 i = 1u << order;
            while (i < 2u << order && !frames[n + i].refs)
                i++;
            if (i < 2u << order)
                break;
            order++;
        }
        buddy_give(&zones[frames[n].zone], &frames[n], order);
        n += 1u << order;
    }
}

static void count_unmanaged(u64 managed)
{
    u64 usable = 0;
    for (u32 i = 0; i < boot_info.region_count; i++) {
        if (boot_info.regions[i].usable)
            usable += boot_info.regions[i].size >> PAGE_SHIFT;
    }
    unmanaged_frames = usable > managed ? usable - managed : 0;
}

void frame_init(void)
{
    for (u32 i = 0; i < CPU_MAX; i++)
        cpus[i].frame_cache = &caches[i];
    for (u32 i = 0; i < ZONES * ORDERS; i++)
        list_init(&zones[i / ORDERS].blocks[i % ORDERS]);

    u64 limit = memory_limit();
    frame_count =
        ALIGN_UP((u32)(memory_end(limit) >> PAGE_SHIFT), 1u << ORDER_MAX);
    u64 size =
        ALIGN_UP((u64)frame_count * sizeof(struct frame), (u64)PAGE_SIZE);
    u64 place = find_place(size);
    frames = phys_to_virt(place);
    memset(frames, 0, (size_t)size);

    struct range r;
    for (u32 i = 0; i < boot_info.region_count; i++) {
        if (usable_range(i, limit, &r))
            manage(r);
    }
    reserve((struct range){ place, place + size });
    for (u32 i = 0; taken_range(i, &r); i++)
        reserve(r);
    for (u32 i = 0; i < boot_info.region_count; i++) {
        if (usable_range(i, limit, &r))
            free_unreserved(r);
    }
    zones[ZONE_LOW].reserve = MIN(zones[ZONE_LOW].total / 64, RESERVE_MAX);
    any_zone = zones[ZONE_HIGH].total ? ZONE_HIGH : ZONE_LOW;
    count_unmanaged(zones[ZONE_LOW].total + zones[ZONE_HIGH].total);
}

void frame_release_region(paddr_t base, u64 size)
{
    struct range r = pages_touched(base, size);
    for (u64 p = r.start; p < r.end; p += PAGE_SIZE) {
        struct frame *f = frame_from_paddr(p);
        if (f)
            frame_unref(f);
    }
}
