// Virtually contiguous kernel memory, VMAP_BASE to VMAP_LIMIT: kernel stacks
// and large rings. (arch's map_device has its own region above.)
//
// Lazy TLB flush: addresses are allocated in rising order. A freed address may
// still be in some CPU's TLB, so it is stale, not free. When the whole region
// is used up, one flush on all CPUs makes all stale addresses free.
//
// Locking: vmap_lock (interrupt-disabling) guards the bit maps. The page table
// entries of a run of pages belong to its owner. A CPU's stack cache belongs to
// it while its interrupts are off.

#include "kernel/base/log.h"
#include "kernel/debug/fail_alloc.h"
#include "kernel/debug/kasan.h"
#include "kernel/debug/track.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/spinlock.h"
#include "lib/string.h"

#include "arch/thread.h"

#define VMAP_PAGES ((VMAP_LIMIT - VMAP_BASE) / PAGE_SIZE)
#define MAP_WORDS (VMAP_PAGES / 32)
#define KSTACK_PAGES (KSTACK_SIZE / PAGE_SIZE)
#define KSTACK_CACHED 8u

static struct spinlock vmap_lock = SPINLOCK_INIT("vmap");
static u32 used[MAP_WORDS];  // in use, guard, stale or being flushed
static u32 stale[MAP_WORDS]; // freed, perhaps in a TLB; subset of `used`
static u32 taken;            // pages used and not stale
static u32 cursor;           // allocation continues at this page
static bool flushing;

static struct kstack_cache {
    u32 count;
    void *stacks[KSTACK_CACHED];
} kstack_caches[CPU_MAX];

static bool is_used(u32 page)
{
    return used[page / 32] & (1u << page % 32);
}

static void mark(u32 *map, u32 page, u32 pages)
{
    spin_assert_held(&vmap_lock);
    for (u32 i = page; i < page + pages; i++)
        map[i / 32] |= 1u << i % 32;
}

// A run of free pages at or after `from`; VMAP_PAGES when there is none.
static u32 find_run(u32 from, u32 pages)
{
    spin_assert_held(&vmap_lock);
    u32 run = 0;
    for (u32 i = from; i < VMAP_PAGES; i++) {
        if (is_used(i))
            run = 0;
        else if (++run == pages)
            return i + 1 - pages;
    }
    return VMAP_PAGES;
}

// Allocates the addresses of `pages` pages; false when no run is left.
static bool take_range(u32 pages, u32 *page)
{
    u32 flags = spin_lock_irq(&vmap_lock);
    u32 at = find_run(cursor, pages);
    if (at < VMAP_PAGES) {
        mark(used, at, pages);
        taken += pages;
        cursor = at + pages;
    }
    spin_unlock_irq(&vmap_lock, flags);
    *page = at;
    return at < VMAP_PAGES;
}

static void flush_here(void *arg UNUSED)
{
    tlb_flush_all();
}

// Frees the pages that are stale now. Pages freed during the flush stay stale.
// The caller has set `flushing`, so only one CPU is here.
static void flush_stale(void)
{
    static u32 flushed[MAP_WORDS];
    u32 flags = spin_lock_irq(&vmap_lock);
    memcpy(flushed, stale, sizeof(stale));
    memset(stale, 0, sizeof(stale));
    spin_unlock_irq(&vmap_lock, flags);

    smp_call_all(flush_here, NULL);

    flags = spin_lock_irq(&vmap_lock);
    for (u32 i = 0; i < MAP_WORDS; i++)
        used[i] &= ~flushed[i];
    cursor = 0;
    spin_unlock_irq(&vmap_lock, flags);
}

// False when interrupts are off: then other CPUs cannot be sent a flush IPI.
// One CPU flushes, with preemption disabled; other CPUs that get here wait for
// it.
static bool recycle(void)
{
    if (!irqs_enabled())
        return false;
    preempt_disable();
    if (!__atomic_exchange_n(&flushing, true, __ATOMIC_ACQUIRE)) {
        flush_stale();
        __atomic_store_n(&flushing, false, __ATOMIC_RELEASE);
    } else {
        while (__atomic_load_n(&flushing, __ATOMIC_ACQUIRE))
            cpu_relax();
    }
    preempt_enable();
    return true;
}

static void *page_address(u32 page)
{
    assert(page < VMAP_PAGES);
    return (void *)(VMAP_BASE + page * PAGE_SIZE);
}

static void map_frame(u32 va, paddr_t paddr, u32 prot)
{
    int err = pagetable_map(&kernel_pagetable, va, paddr, prot | PROT_GLOBAL);
    assert(!err); // all kernel page tables are allocated at start-up
}

static bool map_page(u32 va, u32 prot, int use)
{
    u32 zero = use & VMAP_UNZEROED ? 0 : FRAME_ZERO;
    struct frame *f = frame_alloc(0, FRAME_ANY | zero,
                                  (enum frame_use)(use & ~VMAP_UNZEROED));
    if (!f)
        return false;
    map_frame(va, frame_paddr(f), prot);
    return true;
}

static void unmap_page(u32 va)
{
    struct mapping old;
    bool mapped = pagetable_unmap(&kernel_pagetable, va, &old);
    assert(mapped);
    tlb_flush_page(va);
    frame_unref(frame_from_paddr(old.frame));
}

static void release(u32 first, u32 mapped, u32 pages)
{
    assert(mapped <= pages);
    u32 va = (u32)page_address(first);
    kasan_close((void *)va, mapped * PAGE_SIZE, KASAN_FRAME_FREED);
    for (u32 i = 0; i < mapped; i++)
        unmap_page(va + i * PAGE_SIZE);
    u32 flags = spin_lock_irq(&vmap_lock);
    assert(is_used(first));
    mark(stale, first - 1, pages + 1);
    taken -= pages + 1;
    spin_unlock_irq(&vmap_lock, flags);
}

// The first page above a guard page; 0: no addresses are left.
static u32 take_guarded(u32 pages)
{
    u32 guard;
    assert(pages > 0);
    if (pages >= VMAP_PAGES || fail_alloc())
        return 0;
    if (!take_range(pages + 1, &guard) &&
        !(recycle() && take_range(pages + 1, &guard)))
        return 0;
    return guard + 1;
}

void *vmap_frames(paddr_t base, u32 pages)
{
    u32 first = take_guarded(pages);
    if (!first)
        return NULL;
    u32 va = (u32)page_address(first);
    for (u32 i = 0; i < pages; i++)
        map_frame(va + i * PAGE_SIZE, base + i * PAGE_SIZE, PROT_R);
    kasan_open((void *)va, pages * PAGE_SIZE);
    return (void *)va;
}

void *vmap_alloc(u32 pages, u32 prot, int use)
{
    u32 first = take_guarded(pages);
    if (!first)
        return NULL;
    u32 va = (u32)page_address(first);
    for (u32 i = 0; i < pages; i++) {
        if (!map_page(va + i * PAGE_SIZE, prot, use)) {
            release(first, i, pages);
            return NULL;
        }
    }
    kasan_open((void *)va, pages * PAGE_SIZE);
    return (void *)va;
}

u32 vmap_pages_free(void)
{
    u32 flags = spin_lock_irq(&vmap_lock);
    u32 pages = VMAP_PAGES - taken;
    spin_unlock_irq(&vmap_lock, flags);
    return pages;
}

void vmap_free(void *va, u32 pages)
{
    u32 first = ((u32)va - VMAP_BASE) / PAGE_SIZE;
    assert(first > 0 && first + pages <= VMAP_PAGES);
    release(first, pages, pages);
}

struct frame *frame_of_vmap(const void *va)
{
    struct mapping m;
    bool there = pagetable_lookup(&kernel_pagetable, (u32)va, &m);
    assert(there);
    return frame_from_paddr(m.frame);
}

void *kstack_alloc(void)
{
    void *stack = NULL;
    u32 flags = irq_save();
    struct kstack_cache *cache = &kstack_caches[this_cpu()->id];
    if (cache->count) {
        stack = cache->stacks[--cache->count];
        track_forget(cache->stacks[cache->count]);
    }
    irq_restore(flags);
    if (stack)
        kasan_open(stack, KSTACK_SIZE);
    else
        stack = vmap_alloc(KSTACK_PAGES, PROT_R | PROT_W,
                           FRAME_KSTACK | VMAP_UNZEROED);
    return stack;
}

void kstack_free(void *stack)
{
    bool kept = false;
    kasan_close(stack, KSTACK_SIZE, KASAN_STACK_FREED);
    u32 flags = irq_save();
    struct kstack_cache *cache = &kstack_caches[this_cpu()->id];
    if (cache->count < KSTACK_CACHED) {
        cache->stacks[cache->count++] = stack;
        kept = true;
    }
    irq_restore(flags);
    if (!kept)
        vmap_free(stack, KSTACK_PAGES);
}
