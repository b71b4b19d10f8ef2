// The leak check: at the machine's end every allocated object and frame must
// still be reachable (`make` with any checker).
//
// Memory is marked as by a conservative garbage collector. Every word in .data,
// .bss and on the threads' stacks that may be an address is taken for one. The
// block that it points into, at any offset, is alive; so is everything
// reachable from there. Frames are also referenced by their struct frame, and
// by page tables through physical addresses. The contents of tasks' memory,
// files and pipes are not references, nor are the kernel's own page tables for
// vmap: a stack or ring is alive only if its address is stored somewhere.
//
// The pointers to an object are counted, too. A reference-counted object must
// have at least as many pointers as references. If not, a reference was leaked
// and the object is never freed (a file system that is always busy, a task that
// is never freed). Lists point to their members as well, so a leak of one or
// two references can go unseen; one that repeats is seen.
//
// Unmarked memory is lost, and reported once for each call path that allocated
// it. A stale word that looks like an address can hide a leak, never the
// reverse.
//
// A running thread may hold memory in ways that are not addresses: half of a
// stack that is being freed is unreachable, for instance. So the check waits
// until all other threads sleep, with their references on their stacks, and
// runs in a rendezvous of all CPUs (kernel/sched/stop_machine.h). No thread is
// in the scheduler then, which is where an ended thread is freed.
#ifdef CHECKED

#include "kernel/debug/leak.h"

#include "kernel/base/log.h"
#include "kernel/debug/callers.h"
#include "kernel/debug/track.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/zone.h"
#include "kernel/sched/stop_machine.h"
#include "kernel/task/task.h"
#include "lib/cpu_memory.h"

#define PENDING_MAX 8192u
#define REPORTS_MAX 30u

extern char data_start[], kernel_end[]; // linker.ld

enum { UNMARKED, MARKED, SCANNED, SCANNED_IN_RANGE };

// Addresses that are marked and not yet scanned. What does not fit is found
// again by its mark.
static u32 pending[PENDING_MAX];
static u32 pending_count;
static bool overflowed;

// --- allocated memory -------------------------------------------------------

// The first frame of the allocated block that `number` lies in, or NULL.
static struct frame *block_of(u32 number)
{
    assert(number < frame_count);
    for (u32 order = 0; order <= ORDER_MAX; order++) {
        struct frame *f = &frames[number & ~((1u << order) - 1)];
        if (f->flags & FRAME_MANAGED && f->refs && f->order >= order)
            return f;
    }
    return NULL;
}

static struct slab_cache *cache_of(const struct frame *f)
{
    return f->use == FRAME_SLAB ? f->owner : NULL;
}

// The image, memory from before the allocator, and per-CPU memory.
static bool permanent(const struct frame *f)
{
    return f->use == FRAME_KERNEL;
}

// --- marking ----------------------------------------------------------------

static void mark_pending(u8 *mark, u32 va)
{
    assert(va >= KERNEL_BASE);
    if (*mark != UNMARKED)
        return;
    *mark = MARKED;
    if (pending_count < PENDING_MAX)
        pending[pending_count++] = va;
    else
        overflowed = true;
}

static void mark_frame(struct frame *f)
{
    if (!f || cache_of(f)) // in slabs only objects count
        return;
    if (f->zone == ZONE_LOW)
        mark_pending(&f->mark, (u32)frame_va(f));
    else
        f->mark = SCANNED;
}

static void mark_physical(paddr_t p)
{
    const struct frame *f = frame_from_paddr(p);
    if (f)
        mark_frame(block_of(frame_number(f)));
}

static void mark_table_of_kernel(paddr_t p)
{
    struct frame *f = frame_from_paddr(p);
    if (f)
        f->mark = SCANNED;
}

static void mark_direct(u32 va)
{
    u32 offset = va - KERNEL_BASE;
    u32 in_table = va - (u32)frames;
    if (in_table < frame_count * sizeof(struct frame)) {
        mark_frame(block_of(in_table / sizeof(struct frame)));
        return;
    }
    if (offset >> PAGE_SHIFT >= frame_count)
        return;
    struct frame *f = block_of(offset >> PAGE_SHIFT);
    if (!f)
        return;
    if (!cache_of(f)) {
        mark_frame(f);
        return;
    }
    u32 object;
    struct track *t = track_find(cache_of(f), va, &object);
    if (!t || !t->live)
        return;
    t->pointers += t->pointers < UINT16_MAX;
    mark_pending(&t->mark, object);
}

static struct frame *vmap_frame(u32 va)
{
    struct mapping m;
    if (va < VMAP_BASE || va >= VMAP_LIMIT ||
        !pagetable_lookup(&kernel_pagetable, va, &m))
        return NULL;
    return frame_from_paddr(m.frame);
}

static void scan(u32 start, u32 end);

// A vmap range extends to the next guard page. A mark on one of its frames,
// found by the frame's own address, does not mean that the other frames are
// marked.
static void mark_range(u32 va)
{
    u32 start = va & PAGE_MASK, end;
    struct frame *f = vmap_frame(start);
    if (!f || f->mark == SCANNED_IN_RANGE)
        return;
    while (vmap_frame(start - PAGE_SIZE))
        start -= PAGE_SIZE;
    for (end = start; (f = vmap_frame(end)); end += PAGE_SIZE)
        f->mark = SCANNED_IN_RANGE;
    if (vmap_frame(start)->use != FRAME_KSTACK) // those are scanned by thread
        scan(start, end);
}

// PAE: an address space has a table of its page directories, whose entries are
// present and may have the accessed bit set.
static bool maybe_directory(u32 word)
{
    return (word & ~PAGE_MASK & ~0x20u) == 1;
}

static void mark_word(u32 word)
{
    if (word >= VMAP_BASE) {
        mark_range(word);
    } else if (word >= KERNEL_BASE) {
        mark_direct(word);
    } else if (maybe_directory(word)) {
        const struct frame *f = frame_from_paddr(word & PAGE_MASK);
        if (f && f->use == FRAME_PAGETABLE)
            mark_physical(word & PAGE_MASK);
    }
}

static void scan(u32 start, u32 end)
{
    for (u32 at = ALIGN_UP(start, (u32)sizeof(u32)); at + sizeof(u32) <= end;
         at += sizeof(u32))
        mark_word(*(const volatile u32 *)at);
}

static void scan_frame(struct frame *f)
{
    assert(f->zone == ZONE_LOW && !cache_of(f));
    f->mark = SCANNED;
    u32 va = (u32)frame_va(f);
    if (f->use == FRAME_PAGETABLE)
        pagetable_scan((const void *)va, mark_physical);
    else if (f->use == FRAME_SLAB || (permanent(f) && f->allocated_by))
        scan(va, va + (PAGE_SIZE << f->order));
}

static void scan_object(const struct slab_cache *c, u32 va)
{
    u32 object;
    track_find(c, va, &object)->mark = SCANNED;
    scan(object, object + c->object_size);
}

static void scan_at(u32 va)
{
    assert(va >= KERNEL_BASE && va < VMAP_BASE);
    struct frame *f = block_of((va - KERNEL_BASE) >> PAGE_SHIFT);
    if (cache_of(f))
        scan_object(cache_of(f), va);
    else
        scan_frame(f);
}

// --- all that is allocated --------------------------------------------------

typedef void (*object_fn)(const struct slab_cache *c, struct track *t,
                          u32 object);

static void for_each_object(const struct frame *slab, object_fn fn)
{
    assert(cache_of(slab));
    const struct slab_cache *c = cache_of(slab);
    u32 base = (u32)frame_va(slab), object;
    for (u32 i = 0; i < c->objects_per_slab; i++) {
        struct track *t = track_find(c, base + i * c->object_size, &object);
        if (t->live)
            fn(c, t, object);
    }
}

static void for_each(void (*frame_fn)(struct frame *f), object_fn object_fn)
{
    for (u32 i = 0; i < frame_count;) {
        struct frame *f = &frames[i];
        if (!(f->flags & FRAME_MANAGED) || !f->refs) {
            i++;
            continue;
        }
        if (cache_of(f))
            for_each_object(f, object_fn);
        else
            frame_fn(f);
        i += 1u << f->order;
    }
}

static void rescan_frame(struct frame *f)
{
    if (f->mark == MARKED)
        scan_frame(f);
}

static void rescan_object(const struct slab_cache *c, struct track *t,
                          u32 object)
{
    if (t->mark == MARKED)
        scan_object(c, object);
}

static void scan_pending(void)
{
    do {
        while (pending_count)
            scan_at(pending[--pending_count]);
        if (!overflowed)
            return;
        overflowed = false;
        for_each(rescan_frame, rescan_object);
    } while (pending_count || overflowed);
}

// --- roots ------------------------------------------------------------------

// Scans the used part of a thread's stack; all of it for a thread that was
// stopped on another CPU.
static void scan_stack(const struct thread *t)
{
    u32 bottom = (u32)t->kstack;
    if (!bottom)
        return;
    u32 start = t == current ? frame_pointer() : arch_stack_pointer(&t->arch);
    if (start - bottom >= KSTACK_SIZE || (t->on_cpu && t != current))
        start = bottom;
    scan(start, bottom + KSTACK_SIZE);
}

static void scan_threads(struct task *task, void *arg UNUSED)
{
    const struct thread *t;
    list_for_each(t, &task->threads, task_node) {
        scan_stack(t);
    }
}

// Scans .data and .bss, without the guard page of the boot stack, and without
// the frame allocator's caches, which still contain addresses of allocated
// frames.
static void scan_data(void)
{
    struct mapping m;
    u32 caches = (u32)frame_caches[0],
        caches_end = caches + sizeof(*frame_caches[0]);
    for (u32 va = (u32)data_start; va < (u32)kernel_end; va += PAGE_SIZE) {
        if (!pagetable_lookup(&kernel_pagetable, va, &m))
            continue;
        u32 end = va + PAGE_SIZE;
        scan(va, caches > va ? MIN(end, caches) : va);
        scan(MAX(va, caches_end), end);
    }
}

// The memory of the other CPUs, but for the frame allocator's caches.
static void scan_cpu_memory(void)
{
    for (u32 i = 1; i < cpu_count; i++) {
        u32 block = frame_number(frame_from_va(cpus[i]->arch));
        frames[block].mark = SCANNED;
        LINKER_SET_FOR_EACH(const struct cpu_memory, m, cpu_memory) {
            u32 start = (u32)(*m)->of_cpu[i];
            if ((*m)->of_cpu != (void **)frame_caches)
                scan(start, start + (*m)->size);
        }
    }
}

// Magazines, too, still contain addresses of allocated objects.
static void skip_magazines(const struct slab_cache *c, struct track *t UNUSED,
                           u32 object UNUSED)
{
    if (c->magazines)
        frame_from_va(c->magazines)->mark = SCANNED;
}

static void skip_nothing(struct frame *f UNUSED)
{
}

static void scan_roots(void)
{
    pagetable_scan_kernel(mark_table_of_kernel);
    for_each(skip_nothing, skip_magazines);
    scan_cpu_memory();
    scan_data();
    task_for_each_locked(scan_threads, NULL);
    scan_threads(&kernel_task, NULL);
    for (u32 i = 0; i < cpu_count; i++) {
        u32 top = (u32)cpus[i]->idle_stack_top;
        if (top >= VMAP_BASE) // the boot CPU's stack is in .bss
            scan(top - KSTACK_SIZE, top);
        if (cpus[i]->thread)
            scan_stack(cpus[i]->thread);
    }
}

// --- lost memory ------------------------------------------------------------

static u16 lost[CALLERS_MAX]; // allocated by these callers
static u32 lost_count, checked_count, report_count;

static void count(u8 mark, u16 allocated_by)
{
    assert(allocated_by < CALLERS_MAX);
    checked_count++;
    if (mark == UNMARKED) {
        lost_count++;
        lost[allocated_by] += lost[allocated_by] < UINT16_MAX;
    }
}

static u32 references_of(const struct slab_cache *c, u32 object)
{
    return c->counted ? *(const u32 *)(object + c->refs_offset) : 0;
}

static bool is_overcounted(const struct slab_cache *c, const struct track *t,
                           u32 object)
{
    return t->mark != UNMARKED && t->pointers < UINT16_MAX &&
           references_of(c, object) > t->pointers;
}

static void count_frame(struct frame *f)
{
    if (!permanent(f))
        count(f->mark, f->allocated_by);
}

static void count_object(const struct slab_cache *c, struct track *t,
                         u32 object)
{
    count(t->mark, t->allocated_by);
    lost_count += is_overcounted(c, t, object);
}

// True for the first one with these allocating callers.
static bool to_report(u8 mark, u16 allocated_by)
{
    return mark == UNMARKED && lost[allocated_by] &&
           report_count++ < REPORTS_MAX;
}

static void report_callers(u16 allocated_by)
{
    assert(allocated_by < CALLERS_MAX);
    const u32 *pcs;
    u32 n = callers_get(allocated_by, &pcs), offset = 0;
    for (u32 i = 0; i < n; i++) {
        const char *name = ksym_lookup(pcs[i], &offset);
        console_printf("  %08x %s+%#x\n", pcs[i], name ? name : "?", offset);
    }
    lost[allocated_by] = 0;
}

static void report_frame(struct frame *f)
{
    static const char *const uses[FRAME_USES] = {
        "free",         "of the kernel", "of kmalloc", "for page tables",
        "for a kstack", "for a task",    "for a file", "for a buffer",
    };
    if (permanent(f) || !to_report(f->mark, f->allocated_by))
        return;
    console_printf(
        "leak: %u times %u bytes %s, refs %u, the first at %#llx, allocated "
        "by\n",
        lost[f->allocated_by], PAGE_SIZE << f->order, uses[f->use], f->refs,
        frame_paddr(f));
    report_callers(f->allocated_by);
}

static void report_references(const struct slab_cache *c, const struct track *t,
                              u32 object)
{
    if (report_count++ >= REPORTS_MAX)
        return;
    console_printf("leak: %s at %08x counts %u references, %u pointers to it "
                   "are known; allocated by\n",
                   c->name, object, references_of(c, object), t->pointers);
    report_callers(t->allocated_by);
}

static void report_object(const struct slab_cache *c, struct track *t,
                          u32 object)
{
    if (is_overcounted(c, t, object))
        report_references(c, t, object);
    if (!to_report(t->mark, t->allocated_by))
        return;
    console_printf(
        "leak: %u times %s, %u bytes, the first at %08x, allocated by\n",
        lost[t->allocated_by], c->name, c->object_size, object);
    report_callers(t->allocated_by);
}

static void check(void)
{
    assert(!irqs_enabled()); // in a rendezvous
    spin_lock_irq(&tasks_lock);
    scan_roots();
    scan_pending();
    for_each(count_frame, count_object);
    for_each(report_frame, report_object);
    spin_unlock_irq(&tasks_lock, 0);
    console_printf("leak check: %u objects and frames, %u lost\n",
                   checked_count, lost_count);
}

// --- when -------------------------------------------------------------------

#define REST_PERIOD NSEC_PER_MSEC
#define REST_MAX (5 * NSEC_PER_SEC)

struct leak_scan {
    bool force; // check even if other threads still run
    bool checked;
};

// In a rendezvous of all CPUs: true if only leak_check's caller is runnable.
static bool at_rest(void)
{
    assert(!irqs_enabled());
    return sched_runnable() == 1;
}

static void find_lost(void *arg)
{
    struct leak_scan *l = arg;
    l->checked = l->force || at_rest();
    if (l->checked)
        check();
}

// True when the check has been done.
static bool scan_all(bool force)
{
    struct leak_scan l = { .force = force };
    stop_machine(find_lost, &l);
    return l.checked;
}

bool leak_check(void)
{
    assert_may_sleep();
    __builtin_unwind_init(); // all registers onto this stack
    u64 until = clock_now_ns() + REST_MAX;
    while (!scan_all(false)) {
        if (clock_now_ns() >= until) {
            console_printf("leak check: %u threads are still running\n",
                           sched_runnable() - 1);
            scan_all(true);
            break;
        }
        thread_sleep_until(clock_now_ns() + REST_PERIOD, WAIT_UNINTERRUPTIBLE);
    }
    return lost_count;
}

#endif
