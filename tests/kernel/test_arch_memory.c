// Page tables, the protection of the kernel image, the boot loader's memory
// map, user copies.

#include "arch/boot.h"
#include "arch/i386/boot/memory_map.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/mmu.h"
#include "kernel/base/errno.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/monitor/sysinfo_values.h"
#include "kernel/sched/thread.h"
#include "kernel/task/task.h"
#include "lib/string.h"
#include "tests/kernel/test.h"

#define USER_PAGE 0x10000000u
#define SPAN_MAX MIB(4) // the most that one page table covers

// --- page tables

static u64 tables_in_use(void)
{
    struct frame_stats s;
    frame_stats(&s);
    return s.by_use[FRAME_PAGETABLE];
}

KERNEL_TEST(arch_pages_map_and_unmap)
{
    u64 before = tables_in_use();
    struct pagetable pt;
    struct mapping m;
    if (pagetable_create(&pt))
        panic("no memory for a test");
    expect(!pagetable_lookup(&pt, USER_PAGE, &m));
    expect(!pagetable_unmap(&pt, USER_PAGE, &m));

    u32 prot = PROT_R | PROT_W | PROT_USER;
    expect(!pagetable_map(&pt, USER_PAGE, 0x123000, prot));
    expect(pagetable_lookup(&pt, USER_PAGE, &m));
    expect(m.frame == 0x123000 && !m.accessed && !m.dirty);
    expect((m.prot & ~PROT_X) == prot);
    expect(!(m.prot & PROT_X) || !cpu_features.nx);
    expect(!pagetable_lookup(&pt, USER_PAGE + PAGE_SIZE, &m));

    // Replace, then unmap.
    expect(!pagetable_map(&pt, USER_PAGE, 0x456000, PROT_R | PROT_X));
    expect(pagetable_lookup(&pt, USER_PAGE, &m));
    expect(m.frame == 0x456000 && m.prot == (PROT_R | PROT_X));
    expect(pagetable_unmap(&pt, USER_PAGE, &m) && m.frame == 0x456000);
    expect(!pagetable_lookup(&pt, USER_PAGE, &m));

    // The borders of the user half; the kernel half is shared.
    expect(!pagetable_map(&pt, 0, 0x1000, prot));
    expect(!pagetable_map(&pt, USER_END - PAGE_SIZE, 0x2000, prot));
    expect(pagetable_lookup(&pt, 0, &m) && m.frame == 0x1000);
    expect(pagetable_lookup(&pt, USER_END - PAGE_SIZE, &m));
    expect(pagetable_lookup(&pt, (u32)&pt & PAGE_MASK, &m));
    pagetable_destroy(&pt);
    expect(tables_in_use() == before);
}

KERNEL_TEST(arch_high_frames_keep_their_address)
{
    struct pagetable pt;
    struct mapping m;
    paddr_t high = cpu_features.pae ? 0x9abcdef000ull : 0xfedcb000ull;
    if (pagetable_create(&pt))
        panic("no memory for a test");
    expect(!pagetable_map(&pt, USER_PAGE, high, PROT_R | PROT_USER));
    expect(pagetable_lookup(&pt, USER_PAGE, &m) && m.frame == high);
    expect(pagetable_unmap(&pt, USER_PAGE, &m) && m.frame == high);
    pagetable_destroy(&pt);
}

struct walk {
    u32 seen, sum, stop_at;
    bool hide, clear;
};

static int walk_one(u32 va, void *entry, const struct mapping *m, void *arg)
{
    struct walk *w = arg;
    expect((u32)m->frame == va - USER_PAGE + PAGE_SIZE);
    w->seen++;
    w->sum += va;
    if (w->hide)
        pagetable_entry_protect(entry, PROT_USER);
    if (w->clear)
        pagetable_entry_clear(entry);
    return w->seen == w->stop_at ? 77 : 0;
}

KERNEL_TEST(arch_walk_visits_what_is_mapped)
{
    static const u32 offsets[] = { 0,      PAGE_SIZE, MIB(2) - PAGE_SIZE,
                                   MIB(2), MIB(4),    MIB(37) + 3 * PAGE_SIZE };
    u32 count = ARRAY_SIZE(offsets), sum = 0;
    struct pagetable pt;
    struct mapping m;
    if (pagetable_create(&pt))
        panic("no memory for a test");
    for (u32 i = 0; i < count; i++) {
        expect(!pagetable_map(&pt, USER_PAGE + offsets[i],
                              offsets[i] + PAGE_SIZE, PROT_R | PROT_USER));
        sum += USER_PAGE + offsets[i];
    }
    struct walk all = { 0 }, none = { 0 }, two = { .stop_at = 2 };
    expect(!pagetable_walk(&pt, 0, USER_END, walk_one, &all));
    expect(all.seen == count && all.sum == sum);
    expect(!pagetable_walk(&pt, USER_PAGE + 2 * PAGE_SIZE,
                           USER_PAGE + MIB(2) - PAGE_SIZE, walk_one, &none));
    expect(!none.seen);
    expect(pagetable_walk(&pt, 0, USER_END, walk_one, &two) == 77);
    expect(two.seen == 2);

    // A page without access rights keeps its frame.
    struct walk hide = { .hide = true }, again = { 0 };
    expect(!pagetable_walk(&pt, 0, USER_END, walk_one, &hide));
    expect(pagetable_lookup(&pt, USER_PAGE, &m));
    expect(m.frame == PAGE_SIZE && !(m.prot & (PROT_R | PROT_W | PROT_X)));
    struct walk clear = { .clear = true };
    expect(!pagetable_walk(&pt, 0, USER_END, walk_one, &clear));
    expect(clear.seen == count);
    expect(!pagetable_walk(&pt, 0, USER_END, walk_one, &again));
    expect(!again.seen);
    pagetable_destroy(&pt);
}

KERNEL_TEST(arch_unmap_batch_takes_what_is_mapped)
{
    // More than a batch, in three tables, with holes.
    u32 count = PAGE_BATCH + 10, taken = 0, wrong = 0;
    struct pagetable pt;
    struct page_batch *b = kmalloc(sizeof(*b));
    if (!b || pagetable_create(&pt))
        panic("no memory for a test");
    for (u32 i = 0; i < count; i++)
        expect(!pagetable_map(&pt, USER_PAGE + i * 3 * PAGE_SIZE * 16,
                              (i + 1) * PAGE_SIZE,
                              i % 2 ? PROT_USER : PROT_R | PROT_USER));
    u32 from = 0;
    do {
        pagetable_unmap_batch(&pt, from, USER_END, b);
        wrong += b->first != USER_PAGE + taken * 3 * PAGE_SIZE * 16;
        for (u32 i = 0; i < b->count; i++)
            wrong += b->frames[i] != (taken + i + 1) * PAGE_SIZE;
        taken += b->count;
        wrong += b->last != USER_PAGE + (taken - 1) * 3 * PAGE_SIZE * 16;
        from = b->last + PAGE_SIZE;
    } while (b->count == PAGE_BATCH);
    expect(taken == count && !wrong);
    struct walk left = { 0 };
    expect(!pagetable_walk(&pt, 0, USER_END, walk_one, &left));
    expect(!left.seen);
    // Pages outside the range stay mapped.
    expect(!pagetable_map(&pt, USER_PAGE, PAGE_SIZE, PROT_R | PROT_USER));
    pagetable_unmap_batch(&pt, USER_PAGE + PAGE_SIZE, USER_END, b);
    expect(!b->count);
    pagetable_unmap_batch(&pt, 0, USER_PAGE, b);
    expect(!b->count);
    pagetable_unmap_batch(&pt, USER_PAGE, USER_PAGE + PAGE_SIZE, b);
    expect(b->count == 1 && b->first == USER_PAGE && b->last == USER_PAGE);
    pagetable_destroy(&pt);
    kfree(b);
}

// The page-table side of fork and of destroying an address space. The frames
// are numbers without memory.
static u32 frames_shared, frames_released;
static paddr_t frame_sum;

static void count_shared(paddr_t frame)
{
    frames_shared++;
    frame_sum += frame;
}

static void count_released(paddr_t frame)
{
    frames_released++;
    frame_sum -= frame;
}

KERNEL_TEST(arch_pages_are_shared_and_released)
{
    static const u32 offsets[] = { 0, MIB(2) - PAGE_SIZE, MIB(2),
                                   MIB(9) + 3 * PAGE_SIZE };
    static const u32 prots[] = { PROT_R | PROT_W | PROT_USER,
                                 PROT_R | PROT_X | PROT_USER,
                                 PROT_R | PROT_USER, PROT_USER };
    u32 end = USER_PAGE + MIB(9) + 4 * PAGE_SIZE;
    u64 before = tables_in_use();
    struct page_sharing sharing = { .share = count_shared };
    struct pagetable from, to;
    struct mapping m, copy;
    if (pagetable_create(&from) || pagetable_create(&to))
        panic("no memory for a test");
    frames_shared = frames_released = 0;
    frame_sum = 0;
    for (u32 i = 0; i < ARRAY_SIZE(offsets); i++)
        expect(!pagetable_map(&from, USER_PAGE + offsets[i],
                              offsets[i] + PAGE_SIZE, prots[i]));
    // Only read-only pages: no TLB flush is needed.
    expect(!pagetable_share(&from, &to, USER_PAGE + PAGE_SIZE, end, &sharing));
    expect(sharing.pages == 3 && !sharing.narrowed);
    expect(!pagetable_lookup(&to, USER_PAGE, &m));
    expect(!pagetable_share(&from, &to, USER_PAGE, USER_PAGE + PAGE_SIZE,
                            &sharing));
    expect(sharing.pages == 4 && sharing.narrowed && frames_shared == 4);
    for (u32 i = 0; i < ARRAY_SIZE(offsets); i++) {
        expect(pagetable_lookup(&from, USER_PAGE + offsets[i], &m));
        expect(pagetable_lookup(&to, USER_PAGE + offsets[i], &copy));
        expect(m.frame == offsets[i] + PAGE_SIZE && copy.frame == m.frame);
        expect(!(m.prot & PROT_W) && copy.prot == m.prot);
    }
    pagetable_release(&to, USER_PAGE, end, count_released);
    expect(frames_released == 4 && !frame_sum);
    expect(!pagetable_lookup(&to, USER_PAGE, &m));
    pagetable_destroy_empty(&to);
    pagetable_destroy(&from);
    expect(tables_in_use() == before);
}

KERNEL_TEST(arch_windows_and_direct_map_agree)
{
    struct frame *f = frame_alloc(0, FRAME_ANY, FRAME_BUFFER);
    struct frame *g = frame_alloc(0, FRAME_ANY, FRAME_BUFFER);
    if (!f || !g)
        panic("no memory for a test");
    u32 *a = window_map(frame_paddr(f));
    u32 *b = window_map(frame_paddr(g));
    expect(a != b && this_cpu()->preempt_count >= 2);
    a[0] = 0x11111111;
    b[0] = 0x22222222;
    window_unmap(b);
    b = window_map(frame_paddr(f));
    expect(b[0] == 0x11111111);
    window_unmap(b);
    window_unmap(a);
    a = window_map(frame_paddr(g));
    expect(a[0] == 0x22222222);
    window_unmap(a);
    frame_unref(f);
    frame_unref(g);
}

KERNEL_TEST(arch_devices_are_mapped)
{
    u32 *page = page_alloc(FRAME_BUFFER);
    struct mapping m;
    page[3] = 0xabcdef01;
    volatile u32 *twin = map_device(virt_to_phys(page) + 12, 4);
    expect(twin && *twin == 0xabcdef01);
    expect(pagetable_lookup(&kernel_pagetable, (u32)twin & PAGE_MASK, &m));
    expect(m.frame == virt_to_phys(page) && m.prot & PROT_UNCACHED);
    expect(!map_device(0, 0) && !map_device(0, MIB(64)));
    page_free(page);
}

// --- the kernel's image

extern char text_start[], text_end[], rodata_start[], rodata_end[];
extern char data_start[], boot_stack_guard[];

static bool pages_allow(const char *start, const char *end, u32 wanted)
{
    u32 care = PROT_R | PROT_W | (cpu_features.nx ? PROT_X : 0);
    for (u32 va = (u32)start; va < (u32)end; va += PAGE_SIZE) {
        struct mapping m;
        if (va == (u32)boot_stack_guard)
            continue;
        if (!pagetable_lookup(&kernel_pagetable, va, &m) ||
            m.frame != image_paddr((void *)va) ||
            (m.prot & care) != (wanted & care) || m.prot & PROT_USER)
            return false;
    }
    return true;
}

KERNEL_TEST(arch_image_is_write_or_execute)
{
    struct mapping m;
    expect(pages_allow(text_start, text_end, PROT_R | PROT_X));
    expect(pages_allow(rodata_start, rodata_end, PROT_R));
    expect(pages_allow(data_start, kernel_end, PROT_R | PROT_W));
    expect(!pagetable_lookup(&kernel_pagetable, (u32)boot_stack_guard, &m));
    expect(!pagetable_lookup(&kernel_pagetable, 0, &m));
    // It is seen by its frames, too, wherever it lies.
    const char *page = window_map(image_paddr(rodata_start));
    expect(!memcmp(page, rodata_start, PAGE_SIZE));
    window_unmap((void *)page);
    // All of the kernel's half: no page is both writable and executable.
    u32 bad = 0;
    for (u32 va = KERNEL_BASE; va; va += PAGE_SIZE) {
        if (cpu_features.nx && pagetable_lookup(&kernel_pagetable, va, &m))
            bad += (m.prot & PROT_W) && (m.prot & PROT_X);
    }
    expect(!bad);
}

// --- the memory map

static void expect_in_order(const struct boot_region *r, u32 n)
{
    for (u32 i = 0; i < n; i++) {
        expect(r[i].size && !((r[i].base | r[i].size) & (PAGE_SIZE - 1)));
        if (!i)
            continue;
        u64 end = r[i - 1].base + r[i - 1].size;
        expect(end <= r[i].base);
        expect(end != r[i].base || r[i - 1].usable != r[i].usable);
    }
}

// All page tables. No user task exists yet; /test/mm_protection tests theirs.
KERNEL_TEST(arch_no_page_is_writable_and_executable)
{
    struct sysinfo_protection p;
    sysinfo_fill_protection(&p);
    expect(p.kernel > frames_total() / 2 && p.kernel_executable > 50);
    expect(p.kernel_user == 0);
    if (mmu_forbids_execution())
        expect(p.kernel_both == 0 && p.user_both == 0);
}

KERNEL_TEST(arch_memory_map_is_in_order)
{
    const struct boot_region *r = boot_info.regions;
    expect(boot_info.region_count && !r[0].usable && !r[0].base);
    expect_in_order(r, boot_info.region_count);
}

static bool usable_at(const struct boot_region *r, u32 n, u64 at)
{
    for (u32 i = 0; i < n; i++) {
        if (at >= r[i].base && at - r[i].base < r[i].size)
            return r[i].usable;
    }
    return false;
}

// Random unaligned ranges against a model with one entry per page.
KERNEL_TEST(arch_memory_map_is_sorted_out)
{
    enum { PAGES = 64, RANGES = 12 };
    struct memory_map *m = kzalloc(sizeof(*m));
    struct boot_region r[2 * RANGES];
    if (!m)
        panic("no memory for a test");
    for (u32 round = 0; round < 50; round++) {
        bool whole[PAGES] = { 0 }, refused[PAGES] = { 0 };
        memset(m, 0, sizeof(*m));
        for (u32 i = 0; i < RANGES; i++) {
            u32 start = test_random() % (PAGES * PAGE_SIZE);
            u32 size = test_random() % (20 * PAGE_SIZE);
            u32 end = MIN(start + size, PAGES * PAGE_SIZE);
            bool usable = test_random() % 2;
            memory_map_add(m, start, end - start, usable);
            for (u32 p = 0; p < PAGES; p++) {
                u32 at = p * PAGE_SIZE;
                if (usable && at >= start && at + PAGE_SIZE <= end)
                    whole[p] = true;
                if (!usable && at < end && at + PAGE_SIZE > start)
                    refused[p] = true;
            }
        }
        u32 n = memory_map_finish(m, r, ARRAY_SIZE(r)), bad = 0;
        expect_in_order(r, n);
        for (u32 p = 0; p < PAGES; p++)
            bad += usable_at(r, n, p * PAGE_SIZE) != (whole[p] && !refused[p]);
        expect(!bad);
    }
    // A range beyond 2^64 is cut there.
    memset(m, 0, sizeof(*m));
    memory_map_add(m, ~0ull - MIB(1), ~0ull, true);
    memory_map_add(m, ~0ull, 1, true);
    expect(memory_map_finish(m, r, ARRAY_SIZE(r)) == 1 && r[0].usable);
    kfree(m);
}

// --- user memory

// Two user pages, writable and read-only, in a page table that is loaded with
// interrupts off: no other thread runs on this CPU, and no fault is resolved.
struct user_pages {
    struct pagetable pt;
    char *writable, *readonly;
    u32 flags;
};

static void user_pages_open(struct user_pages *u)
{
    u->writable = page_alloc(FRAME_BUFFER);
    u->readonly = page_alloc(FRAME_BUFFER);
    if (!u->writable || !u->readonly || pagetable_create(&u->pt) ||
        pagetable_map(&u->pt, USER_PAGE, virt_to_phys(u->writable),
                      PROT_R | PROT_W | PROT_USER) ||
        pagetable_map(&u->pt, USER_PAGE + PAGE_SIZE, virt_to_phys(u->readonly),
                      PROT_R | PROT_USER))
        panic("no memory for a test");
    u->flags = irq_save();
    pagetable_load(&u->pt);
}

static void user_pages_close(struct user_pages *u)
{
    struct aspace *as = this_cpu()->aspace;
    pagetable_load(as ? &as->pt : &kernel_pagetable);
    irq_restore(u->flags);
    pagetable_destroy(&u->pt);
    page_free(u->writable);
    page_free(u->readonly);
}

KERNEL_TEST(arch_user_copies)
{
    struct user_pages u;
    char buf[64], out[64];
    for (u32 i = 0; i < sizeof(buf); i++)
        buf[i] = (char)(i * 7 + 1);
    user_pages_open(&u);
    u32 bad = 0;
    for (u32 n = 0; n <= sizeof(buf); n++) {
        for (u32 shift = 0; shift < 4; shift++) {
            u32 at = USER_PAGE + 100 + shift;
            memset(u.writable, 0x55, 256);
            memset(out, 0, sizeof(out));
            bad += copy_to_user(at, buf, n) != 0;
            bad += memcmp(u.writable + 100 + shift, buf, n) != 0;
            bad += u.writable[100 + shift + n] != 0x55;
            bad += copy_from_user(out, at, n) != 0;
            bad += memcmp(out, buf, n) != 0;
            bad += zero_user(at, n) != 0;
            bad += n && (u.writable[100 + shift + n - 1] != 0);
            bad += u.writable[100 + shift + n] != 0x55;
        }
    }
    expect(!bad);
    // Up to the last mapped byte and not beyond.
    u32 end = USER_PAGE + 2 * PAGE_SIZE;
    expect(!copy_from_user(out, end - 64, 64));
    expect(copy_from_user(out, end - 63, 64) == -EFAULT);
    expect(copy_to_user(end - 4, buf, 4) == -EFAULT); // read-only
    expect(copy_to_user(USER_PAGE + PAGE_SIZE - 2, buf, 4) == -EFAULT);
    expect(zero_user(end - 4, 4) == -EFAULT);
    // Bad pointers return -EFAULT.
    expect(copy_from_user(out, 0, 1) == -EFAULT);
    expect(copy_from_user(out, KERNEL_BASE, 1) == -EFAULT);
    expect(copy_from_user(out, USER_END - 1, 2) == -EFAULT);
    expect(copy_from_user(out, USER_PAGE, ~0u) == -EFAULT);
    expect(copy_from_user(out, ~0u, 2) == -EFAULT);
    expect(copy_to_user((u32)out, buf, 4) == -EFAULT);
    expect(zero_user((u32)out, 4) == -EFAULT);
    expect(!copy_from_user(out, USER_END, 0));
    user_pages_close(&u);
}

// Runs in a thread of its own, as it overwrites the FPU registers.
static void fpu_in_user_memory(void *done)
{
    struct user_pages u;
    bool live = fpu_first_use();
    user_pages_open(&u);
    u32 end = USER_PAGE + 2 * PAGE_SIZE;
    expect(live && !fxsave_to_user(USER_PAGE));
    expect(!fxrstor_from_user(USER_PAGE));
    expect(fxsave_to_user(USER_PAGE + PAGE_SIZE) == -EFAULT); // read-only
    expect(fxsave_to_user(USER_PAGE + PAGE_SIZE - 16) == -EFAULT);
    expect(fxrstor_from_user(USER_PAGE + 4) == -EFAULT);
    expect(fxrstor_from_user(end - 16) == -EFAULT);
    expect(fxrstor_from_user(USER_END - 16) == -EFAULT);
    expect(fxsave_to_user(KERNEL_BASE) == -EFAULT);
    expect(!fxrstor_from_user(USER_PAGE));
    user_pages_close(&u);
    __atomic_store_n((bool *)done, true, __ATOMIC_RELEASE);
}

KERNEL_TEST(arch_fpu_in_user_memory)
{
    static bool done;
    if (!cpu_features.fxsr) {
        test_skip("the CPU has no FXSAVE");
        return;
    }
    done = false;
    if (kthread_create("test", fpu_in_user_memory, &done, NULL))
        panic("no memory for a test");
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
        thread_sleep_until(clock_now_ns() + NSEC_PER_MSEC,
                           WAIT_UNINTERRUPTIBLE);
}

KERNEL_TEST(arch_user_strings)
{
    struct user_pages u;
    char out[40];
    user_pages_open(&u);
    u32 bad = 0;
    for (u32 length = 0; length < 20; length++) {
        for (u32 shift = 0; shift < 4; shift++) {
            u32 at = USER_PAGE + shift;
            memset(u.writable, 'x', 64);
            u.writable[shift + length] = 0;
            memset(out, '#', sizeof(out));
            bad += copy_string_from_user(out, at, 20) != (int)length;
            bad += strlen(out) != length;
            bad += copy_string_from_user(out, at, length + 1) != (int)length;
            bad += copy_string_from_user(out, at, length) != -ENAMETOOLONG;
            bad += out[20] != '#';
        }
    }
    expect(!bad);
    // A string may end at the last mapped byte, but not run beyond it.
    u32 end = USER_PAGE + 2 * PAGE_SIZE;
    memset(u.readonly, 'y', PAGE_SIZE);
    expect(copy_string_from_user(out, end - 10, 40) == -EFAULT);
    expect(copy_string_from_user(out, end - 10, 10) == -ENAMETOOLONG);
    u.readonly[PAGE_SIZE - 1] = 0;
    for (u32 n = 1; n < 12; n++)
        expect(copy_string_from_user(out, end - n, 40) == (int)n - 1);
    expect(copy_string_from_user(out, 0, 40) == -EFAULT);
    expect(copy_string_from_user(out, (u32) "kernel", 40) == -EFAULT);
    user_pages_close(&u);
}

KERNEL_TEST(arch_user_words)
{
    struct user_pages u;
    u32 value = 0, ro = USER_PAGE + PAGE_SIZE;
    user_pages_open(&u);
    expect(!user_store_u32(USER_PAGE + 8, 41));
    expect(!user_load_u32(USER_PAGE + 8, &value) && value == 41);
    expect(!user_store_u32(USER_PAGE + 8, 42));
    expect(!user_load_u32(USER_PAGE + 8, &value) && value == 42);
    expect(user_store_u32(ro, 1) == -EFAULT);
    expect(!user_load_u32(ro, &value) && value == 0);
    expect(user_load_u32(0, &value) == -EFAULT);
    expect(user_load_u32(USER_END - 2, &value) == -EFAULT);
    expect(user_load_u32((u32)&value, &value) == -EFAULT);
    expect(user_store_u32(~0u, 1) == -EFAULT);
    user_pages_close(&u);
}
