// The kernel half of the address space, and its machine-dependent mappings: the
// direct map, the image by permission, windows (devices: device_map.c).
//
// Built once, by arch_init_memory on the boot CPU. The direct map covers
// everything that the memory map lists below DIRECT_MAP_MAX, firmware tables
// included, by large pages; the chunks of the kernel's image, and those of the
// memory in which it lies, are mapped page by page. All tables
// above VMAP_BASE are allocated at once, so no directory entry ever changes: in
// two-level mode each task has a copy of the directory.

#include "arch/i386/mm/memory.h"
#include "arch/boot.h"
#include "arch/cpu.h"
#include "arch/i386/boot/kaslr.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/registers.h"
#include "arch/i386/dev/display.h"
#include "arch/i386/mm/entry.h"
#include "kernel/base/log.h"
#include "kernel/debug/kasan.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"

#define TEXT_PAGES 2u

_Static_assert(KERNEL_BASE + DIRECT_MAP_MAX <= VMAP_BASE, "the direct map");
_Static_assert((CPU_MAX * (WINDOWS_PER_CPU + 1) + TEXT_PAGES) * PAGE_SIZE <=
                   -WINDOW_BASE,
               "windows, the samplers', the one onto the code");
_Static_assert(VMAP_LIMIT % MIB(4) == 0 && WINDOW_BASE % MIB(4) == 0,
               "whole tables");

#define RW (PROT_R | PROT_W | PROT_GLOBAL)

extern char text_end[], rodata_start[], rodata_end[];
extern char boot_stack_guard[];
extern u64 early_pointers[];
extern u32 early_directory[];

static u64 pointers[4] __attribute__((aligned(32))); // PAE: the kernel's
u32 direct_map_size = DIRECT_MAP_MAX;
u32 image_distance;

void memory_init_boot(void)
{
    mmu_pae = read_cr4() & ASM_CR4_PAE;
    kernel_pagetable.root = mmu_pae ? (void *)pointers : early_directory;
    kernel_pagetable.paddr =
        image_paddr(mmu_pae ? (void *)early_pointers : early_directory);
    // For lookups only: they take it for an address in the direct map.
    pointers[3] = ((u32)early_directory - KERNEL_BASE) | ENTRY_PRESENT;
}

bool mmu_forbids_execution(void)
{
    return mmu_nx;
}

void *table_alloc(void)
{
    return page_alloc(FRAME_PAGETABLE);
}

static void *must_alloc_table(void)
{
    void *table = table_alloc();
    if (!table)
        panic("no memory for the kernel's page tables");
    return table;
}

// Permissions of a page of the direct map.
static u32 page_prot(u32 va)
{
    if (va >= (u32)text_start && va < (u32)text_end)
        return PROT_R | PROT_X | PROT_GLOBAL;
    if (va >= (u32)rodata_start && va < (u32)rodata_end)
        return PROT_R | PROT_GLOBAL;
    return RW;
}

u32 direct_memory_end(void)
{
    u64 end = MIB(1);
    for (u32 i = 0; i < boot_info.region_count; i++) {
        const struct boot_region *r = &boot_info.regions[i];
        u64 region_end = r->base + r->size;
        if (r->base < DIRECT_MAP_MAX)
            end = MAX(end, MIN(region_end, (u64)DIRECT_MAP_MAX));
    }
    return (u32)end;
}

// The entry for a page of the direct map; 0: it is not mapped. Programs map
// pages of the image (the vDSO), which samplers then read by the direct map.
static u64 page_entry(u32 va)
{
    if (va == (u32)boot_stack_guard)
        return 0;
    if (is_in_image(va))
        return entry_make(image_paddr((void *)va), page_prot(va));
    if (is_in_image(va - image_distance)) // the memory in which it lies
        return entry_make(va - KERNEL_BASE, PROT_R | PROT_GLOBAL);
    return entry_make(va - KERNEL_BASE, RW);
}

// Builds the table for the chunk at `va`, each page with its own permissions.
static u64 map_small(u32 va)
{
    char *table = must_alloc_table();
    for (u32 i = 0; i < entries_per_table(); i++, va += PAGE_SIZE)
        entry_set(table + i * entry_size(), page_entry(va));
    return virt_to_phys(table) | ENTRY_PRESENT | ENTRY_WRITE;
}

static bool is_image_chunk(u32 va)
{
    return va < (u32)kernel_end && va + table_span() > image_start();
}

// The kernel's directory entry for the chunk at `va`.
static u64 kernel_chunk(u32 va)
{
    if (va >= VMAP_BASE)
        return virt_to_phys(must_alloc_table()) | ENTRY_PRESENT | ENTRY_WRITE;
#ifdef KASAN
    if (va >= KASAN_SHADOW)
        return kasan_chunk(va, direct_map_size);
#endif
    if (is_image_chunk(va))
        return map_small(va);
    if (va - KERNEL_BASE >= direct_map_size)
        return 0;
    if (is_image_chunk(va - image_distance))
        return map_small(va);
    return entry_make(va - KERNEL_BASE, RW) | ENTRY_LARGE;
}

static bool is_memory(const struct boot_module *m)
{
    for (u64 p = m->base; p < m->base + m->size; p += PAGE_SIZE)
        if (!frame_from_paddr(p))
            return false;
    return !m->size || frame_from_paddr(m->base + m->size - 1);
}

static void check_modules(void)
{
    for (u32 i = 0; i < boot_info.module_count; i++) {
        const struct boot_module *m = &boot_info.modules[i];
        u64 total = frames_total() * (u64)PAGE_SIZE;
        if (m->base + m->size <= direct_memory_end() || is_memory(m))
            continue;
        if (total < DIRECT_MAP_MAX)
            panic("no memory for boot module %s: at least %u KiB more are "
                  "needed than %u MiB",
                  m->name,
                  (u32)((m->base + m->size - direct_memory_end()) / 1024),
                  DIV_ROUND_UP((u32)total, MIB(1)));
        panic("boot module %s lies at %#llx, where there is no memory", m->name,
              m->base);
    }
}

// Large pages of the early page tables have hidden more than the image's
// addresses do. (Which addresses these are is not told.)
static void report_move(void)
{
    paddr_t paddr = image_paddr((void *)image_start());
    u32 end = (u32)kernel_end - KERNEL_BASE, hidden = 0;
    if (!image_distance)
        return;
    frame_release_region(end, ALIGN_UP(end, IMAGE_ALIGN) - end);
    for (u32 at = image_start() - KERNEL_BASE; at < end; at += PAGE_SIZE)
        hidden += frame_from_paddr(at) != NULL;
    if (paddr != IMAGE_PADDR || hidden)
        log_printf("memory: kernel image at %#llx, linked for %#x: its "
                   "addresses hide %u KiB\n",
                   paddr, IMAGE_PADDR, hidden * (PAGE_SIZE / 1024));
}

void arch_init_memory(void)
{
    mmu_nx = mmu_pae && cpu_features.nx;
    if (cpu_features.pae_unused)
        log_printf("warning: the CPU has PAE, but not CMPXCHG8B: no PAE, "
                   "no protection from execution\n");
    else if (!mmu_nx)
        log_printf("warning: the CPU has no NX: every readable page is "
                   "executable\n");
    direct_map_size = ALIGN_UP(direct_memory_end(), table_span());
    check_modules();
    char *directory = must_alloc_table();
    u32 size = mmu_pae ? 8 : 4;
    u32 chunks = -KERNEL_BASE / table_span();
    u32 first = mmu_pae ? 0 : entries_per_table() - chunks;
    for (u32 i = 0; i < chunks; i++) {
        u64 e = kernel_chunk(KERNEL_BASE + i * table_span());
        entry_set(directory + (first + i) * size, e);
    }
    pointers[3] = virt_to_phys(directory) | ENTRY_PRESENT;
    kernel_pagetable.root = mmu_pae ? (void *)pointers : directory;
    kernel_pagetable.paddr =
        mmu_pae ? image_paddr(pointers) : virt_to_phys(directory);
    this_cpu()->arch->double_fault_tss.cr3 = (u32)kernel_pagetable.paddr;
    framebuffer_map();
    pagetable_load(&kernel_pagetable);
    framebuffer_move();
    tlb_flush_all();
    report_move();
    kaslr_report();
    kasan_start(direct_map_size);
}

// The sampler's windows follow those of window_map.
NOTRACE u32 sampler_window(u32 cpu)
{
    return WINDOW_BASE + (CPU_MAX * WINDOWS_PER_CPU + cpu) * PAGE_SIZE;
}

// Interrupt handlers use no windows: between map and unmap only this thread
// changes this CPU's count and entries.
void *window_map(paddr_t frame)
{
    preempt_disable();
    if (is_direct(frame))
        return phys_to_virt(frame);
    struct cpu *c = this_cpu();
    assert(c->arch->windows < WINDOWS_PER_CPU);
    u32 slot = c->id * WINDOWS_PER_CPU + c->arch->windows++;
    u32 va = WINDOW_BASE + slot * PAGE_SIZE;
    entry_exchange(leaf_entry(&kernel_pagetable, va), entry_make(frame, RW));
    tlb_flush_page(va);
    return (void *)va;
}

void window_unmap(void *va)
{
    if ((u32)va >= WINDOW_BASE) {
        struct cpu *c = this_cpu();
        c->arch->windows--;
        u32 slot = c->id * WINDOWS_PER_CPU + c->arch->windows;
        assert((u32)va == WINDOW_BASE + slot * PAGE_SIZE);
        entry_exchange(leaf_entry(&kernel_pagetable, (u32)va), 0);
    }
    preempt_enable();
}
