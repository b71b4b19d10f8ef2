// Frames, the kernel heap and vmap: the promises of their headers.

#include "arch/cpu.h"
#include "kernel/debug/kasan.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/thread.h"
#include "lib/string.h"
#include "tests/kernel/test.h"

#define MANY 256u
#define MAGAZINE 32u // maximum of cached objects per CPU

static u64 frames_of(enum frame_use use)
{
    struct frame_stats s;
    frame_stats(&s);
    return s.by_use[use];
}

static void fill(void *p, u32 value, u32 bytes)
{
    for (u32 i = 0; i < bytes / sizeof(u32); i++)
        ((u32 *)p)[i] = value;
}

static bool filled(const void *p, u32 value, u32 bytes)
{
    for (u32 i = 0; i < bytes / sizeof(u32); i++) {
        if (((const u32 *)p)[i] != value)
            return false;
    }
    return true;
}

KERNEL_TEST(mm_frames_are_disjoint_and_counted)
{
    static struct frame *f[MANY];
    u64 before = frames_of(FRAME_BUFFER), expected = before;
    for (u32 i = 0; i < MANY; i++) {
        u32 order = test_random() % 4;
        f[i] = frame_alloc(order, FRAME_LOW, FRAME_BUFFER);
        expect(f[i] && frame_refs(f[i]) == 1);
        expect(!(frame_paddr(f[i]) & ((PAGE_SIZE << order) - 1)));
        expect(frame_paddr(f[i]) >= 0x10000);
        fill(frame_va(f[i]), i, PAGE_SIZE << order);
        expected += 1u << order;
    }
    expect(frames_of(FRAME_BUFFER) == expected);
    for (u32 i = 0; i < MANY; i++) {
        expect(filled(frame_va(f[i]), i, PAGE_SIZE << f[i]->order));
        expect(frame_from_va(frame_va(f[i])) == f[i]);
        expect(frame_from_paddr(frame_paddr(f[i])) == f[i]);
        frame_unref(f[i]);
    }
    expect(frames_of(FRAME_BUFFER) == before);
}

KERNEL_TEST(mm_frame_zero_copy_and_references)
{
    struct frame *a = frame_alloc(0, FRAME_ANY, FRAME_BUFFER);
    struct frame *b = frame_alloc(0, FRAME_ANY | FRAME_ZERO, FRAME_BUFFER);
    char *va = window_map(frame_paddr(a));
    fill(va, 0x12345678, PAGE_SIZE);
    window_unmap(va);
    va = window_map(frame_paddr(b));
    expect(filled(va, 0, PAGE_SIZE));
    window_unmap(va);
    frame_copy(b, a);
    va = window_map(frame_paddr(b));
    expect(filled(va, 0x12345678, PAGE_SIZE));
    window_unmap(va);
    u64 used = frames_of(FRAME_BUFFER);
    frame_ref(a);
    expect(frame_refs(a) == 2);
    frame_unref(a);
    expect(frames_of(FRAME_BUFFER) == used);
    frame_unref(a);
    frame_unref(b);
    expect(frames_of(FRAME_BUFFER) == used - 2);
}

KERNEL_TEST(mm_pages_come_zeroed)
{
    static void *page[40];
    u64 before = frames_of(FRAME_BUFFER);
    for (u32 round = 0; round < 3; round++) {
        for (u32 i = 0; i < ARRAY_SIZE(page); i++) {
            page[i] = page_alloc(FRAME_BUFFER);
            expect(page[i] && filled(page[i], 0, PAGE_SIZE));
            fill(page[i], ~i, PAGE_SIZE);
        }
        expect(frames_of(FRAME_BUFFER) == before + ARRAY_SIZE(page));
        for (u32 i = 0; i < ARRAY_SIZE(page); i++) {
            bool zeroed = test_random() & 1;
            if (zeroed)
                fill(page[i], 0, PAGE_SIZE);
            (zeroed ? page_free_zeroed : page_free)(page[i]);
        }
        expect(frames_of(FRAME_BUFFER) == before);
    }
    struct frame_stats s;
    frame_stats(&s);
    expect(s.total == s.used + s.free);
}

// The uses are read one after the other: they add up unless a frame is
// allocated or freed between the reads.
KERNEL_TEST(mm_frame_statistics_add_up)
{
    struct frame_stats s;
    u64 sum, limit = clock_now_ns() + TEST_PATIENCE;
    do {
        frame_stats(&s);
        expect(s.total == s.used + s.free);
        expect(s.zone_total[0] + s.zone_total[1] == s.total);
        expect(s.zone_free[0] + s.zone_free[1] == s.free);
        sum = 0;
        for (u32 use = 0; use < FRAME_USES; use++)
            sum += s.by_use[use];
    } while (sum != s.total && clock_now_ns() < limit);
    expect(sum == s.total);
}

static u32 take_blocks(struct list *taken, u32 order, u32 max)
{
    u32 n = 0;
    struct frame *f;
    list_init(taken);
    while (n < max && (f = frame_alloc(order, FRAME_LOW, FRAME_BUFFER))) {
        list_push_back(taken, &f->node);
        n++;
    }
    return n;
}

static void give_blocks(struct list *taken)
{
    struct frame *f, *next;
    list_for_each_safe(f, next, taken, node)
        frame_unref(f);
}

// Freed single frames coalesce to large blocks.
KERNEL_TEST(mm_frames_coalesce)
{
    struct list taken;
    u32 large = take_blocks(&taken, 10, 1000);
    give_blocks(&taken);
    struct frame_stats s;
    frame_stats(&s);
    take_blocks(&taken, 0, (u32)s.zone_free[0] / 2);
    // First every second frame, so that no two neighbours are free.
    struct frame *f, *next;
    bool odd = false;
    list_for_each_safe(f, next, &taken, node) {
        if ((odd = !odd)) {
            list_remove(&f->node);
            frame_unref(f);
        }
    }
    give_blocks(&taken);
    // Frames in the caches of other CPUs may split two blocks each.
    u32 after = take_blocks(&taken, 10, 1000);
    give_blocks(&taken);
    expect(after + 2 * cpu_count >= large);
}

static const struct slab_cache *found;

static void find_cache(const struct slab_cache *c, void *arg)
{
    static struct slab_cache copy;
    if (!strcmp(c->name, arg)) {
        copy = *c;
        found = &copy;
    }
}

static u32 objects_in(const char *name)
{
    found = NULL;
    slab_for_each(find_cache, (void *)name);
    return found ? found->used : 0;
}

struct specimen {
    u32 words[13];
};
SLAB_CACHE(specimen_cache, struct specimen);

KERNEL_TEST(mm_slab_objects_are_disjoint_and_counted)
{
    static struct specimen *s[5000];
    for (u32 i = 0; i < ARRAY_SIZE(s); i++) {
        s[i] = slab_alloc(&specimen_cache);
        expect(s[i]);
        fill(s[i], i, sizeof(*s[i]));
    }
    expect(objects_in("struct specimen") == ARRAY_SIZE(s));
    for (u32 i = 0; i < ARRAY_SIZE(s); i++) {
        u32 other = test_random() % ARRAY_SIZE(s);
        struct specimen *swap = s[i];
        s[i] = s[other];
        s[other] = swap;
    }
    preempt_disable(); // so that only one CPU's magazine caches objects
    for (u32 i = 0; i < ARRAY_SIZE(s); i++) {
        expect(filled(s[i], s[i]->words[0], sizeof(*s[i])));
        slab_free(&specimen_cache, s[i]);
    }
    preempt_enable();
    expect(objects_in("struct specimen") == 0);
    // Empty slabs are freed.
    expect(found->slabs <= 2 * MAGAZINE + kasan_waiting(&specimen_cache));
}

KERNEL_TEST(mm_kmalloc_sizes_and_alignment)
{
    static void *p[MANY];
    static u32 size[MANY];
    for (u32 round = 0; round < 4; round++) {
        for (u32 i = 0; i < MANY; i++) {
            size[i] = 4 + (test_random() % 5000 & ~3u);
            p[i] = kmalloc(size[i]);
            expect(p[i] && !((u32)p[i] & (size[i] >= 16 ? 15 : 7)));
            fill(p[i], i * 7919, size[i]);
        }
        for (u32 i = 0; i < MANY; i++) {
            expect(filled(p[i], i * 7919, size[i]));
            kfree(p[i]);
        }
    }
    for (u32 n = KIB(4); n <= MIB(1); n *= 2) {
        u32 *large = kzalloc(n);
        expect(large && filled(large, 0, n));
        kfree(large);
    }
    expect(!kmalloc(MIB(1) + 1));
    expect(!kmalloc(~0u));
    kfree(NULL);
    char *copy = kstrdup("strobe");
    expect(copy && !strcmp(copy, "strobe"));
    kfree(copy);
}

static bool mapped(u32 va)
{
    struct mapping m;
    return pagetable_lookup(&kernel_pagetable, va, &m);
}

KERNEL_TEST(mm_vmap_maps_with_guards)
{
    u64 before = frames_of(FRAME_BUFFER);
    char *a = vmap_alloc(3, PROT_R | PROT_W, FRAME_BUFFER);
    char *b = vmap_alloc(1, PROT_R | PROT_W, FRAME_BUFFER);
    expect(a && b && frames_of(FRAME_BUFFER) == before + 4);
    expect(filled(a, 0, 3 * PAGE_SIZE));
    expect(!mapped((u32)a - PAGE_SIZE) && !mapped((u32)b - PAGE_SIZE));
    fill(a, 1, 3 * PAGE_SIZE);
    fill(b, 2, PAGE_SIZE);
    expect(filled(a, 1, 3 * PAGE_SIZE));
    vmap_free(a, 3);
    expect(!mapped((u32)a));
    vmap_free(b, 1);
    expect(frames_of(FRAME_BUFFER) == before);
    expect(!vmap_alloc(0x10000, PROT_R | PROT_W, FRAME_BUFFER));
}

// More pages in total than the area has: ranges are reused after a TLB flush.
KERNEL_TEST(mm_vmap_recycles)
{
    u64 before = frames_of(FRAME_BUFFER);
    for (u32 i = 0; i < 300; i++) {
        u32 *p = vmap_alloc(255, PROT_R | PROT_W, FRAME_BUFFER);
        expect(p);
        if (!p)
            break;
        p[0] = i;
        p[254 * 1024] = ~i;
        expect(p[0] == i && p[254 * 1024] == ~i);
        vmap_free(p, 255);
    }
    expect(frames_of(FRAME_BUFFER) == before);
}

// The CPU's stack cache: it has room for the stack that this thread allocates.
KERNEL_TEST(mm_kernel_stacks_are_reused)
{
    preempt_disable();
    char *s = kstack_alloc();
    expect(s && !mapped((u32)s - PAGE_SIZE));
    fill(s, 3, KSTACK_SIZE);
    kstack_free(s);
    char *again = kstack_alloc();
    preempt_enable();
    expect(again == s);
    kstack_free(again);
}

// --- all CPUs at once -------------------------------------------------------

#define WORKERS 8u
#define HELD 64u

static u32 workers_left, worker_errors;

static void churn(void *arg)
{
    u32 seed = (u32)arg * 2654435761u + 1;
    static struct {
        struct frame *frame[HELD];
        u32 *object[HELD];
    } held[WORKERS];
    __typeof__(&held[0]) h = &held[(u32)arg];
    memset(h, 0, sizeof(*h));
    for (u32 i = 0; i < 20000; i++) {
        seed = seed * 1664525 + 1013904223;
        u32 slot = seed >> 24 & (HELD - 1);
        u32 mark = (u32)arg << 24 | i;
        if (h->frame[slot]) {
            u32 *va = frame_va(h->frame[slot]);
            if (*va != *h->object[slot])
                __atomic_fetch_add(&worker_errors, 1, __ATOMIC_RELAXED);
            frame_unref(h->frame[slot]);
            kfree(h->object[slot]);
            h->frame[slot] = NULL;
            continue;
        }
        struct frame *f = frame_alloc(seed >> 20 & 1, FRAME_LOW, FRAME_BUFFER);
        u32 *object = kmalloc(sizeof(u32) + (seed >> 16 & 0x7f));
        if (!f || !object) {
            __atomic_fetch_add(&worker_errors, 1, __ATOMIC_RELAXED);
            break;
        }
        *(u32 *)frame_va(f) = *object = mark;
        h->frame[slot] = f;
        h->object[slot] = object;
    }
    for (u32 slot = 0; slot < HELD; slot++) {
        if (h->frame[slot]) {
            frame_unref(h->frame[slot]);
            kfree(h->object[slot]);
        }
    }
    __atomic_fetch_sub(&workers_left, 1, __ATOMIC_RELEASE);
}

KERNEL_TEST(mm_allocators_on_all_cpus)
{
    u64 before = frames_of(FRAME_BUFFER);
    worker_errors = 0;
    workers_left = WORKERS;
    for (u32 i = 0; i < WORKERS; i++) {
        if (kthread_create("churn", churn, (void *)i, NULL)) {
            expect(!"a kernel thread");
            __atomic_fetch_sub(&workers_left, 1, __ATOMIC_RELAXED);
        }
    }
    while (__atomic_load_n(&workers_left, __ATOMIC_ACQUIRE))
        thread_sleep_until(clock_now_ns() + NSEC_PER_MSEC,
                           WAIT_UNINTERRUPTIBLE);
    expect(!worker_errors);
    expect(frames_of(FRAME_BUFFER) == before);
}
