// Page tables: one interface for PAE (with NX) and for two-level paging.
//
// The address space:  0x00000000 user | KERNEL_BASE direct map of the low zone
// | VMAP_BASE mapped piecewise: kernel stacks, devices | WINDOW_BASE per-CPU
// windows onto frames of the high zone. All page tables above VMAP_BASE exist
// from start-up on, so a kernel mapping made by one CPU is visible in every
// address space at once.
#pragma once

#include "lib/assert.h"
#include "lib/types.h"

typedef u64 paddr_t;

#define PAGE_SHIFT 12
#define PAGE_SIZE 4096u
#define PAGE_MASK (~(u32)(PAGE_SIZE - 1))

#define USER_END 0xc0000000u
#define KERNEL_BASE 0xc0000000u
#define KERNEL_LOAD 0xc0400000u    // the kernel's image is linked for this
#define DIRECT_MAP_MAX 0x30000000u // bytes: the low zone ends at 768 MiB
#ifdef KASAN // a byte of shadow for each 8 from KERNEL_BASE on
#define KASAN_SHADOW 0xf0000000u
#define VMAP_BASE 0xf8000000u
#else
#define VMAP_BASE 0xf0000000u
#endif
#define VMAP_LIMIT 0xfc000000u // end of kernel/mm's part; devices' part follows
#define VMAP_END 0xff800000u
#define WINDOW_BASE 0xff800000u

// The image is loaded at IMAGE_PADDR, or moved: at another multiple of
// IMAGE_ALIGN below DIRECT_MAP_MAX. Its addresses are in the direct map: those
// for which it is linked, or by whole large pages higher (boot/kaslr.c). Unless
// they are those of the memory in which it lies, they hide memory, if there is
// any, and the former is mapped a second time, read-only.
#define IMAGE_PADDR (KERNEL_LOAD - KERNEL_BASE)
#define IMAGE_ALIGN 0x400000u

#define PROT_R 1u
#define PROT_W 2u
#define PROT_X 4u
#define PROT_USER 8u
#define PROT_COMBINING 16u // video memory: stores may be collected
#define PROT_UNCACHED 48u  // device memory: two bits
#define PROT_GLOBAL 64u

// Whether pages without PROT_X cannot be executed: the CPU has NX (and PAE).
bool mmu_forbids_execution(void);

struct pagetable {
    void *root;    // kernel address
    paddr_t paddr; // for CR3
    u32 tables;    // lowest-level tables allocated so far; marked
};
extern struct pagetable kernel_pagetable;

// A present leaf entry, decoded.
struct mapping {
    paddr_t frame; // page-aligned
    u32 prot;
    bool accessed, dirty;
};

extern char text_start[], kernel_end[]; // linker.ld
// By how much the image lies above the memory of its addresses, or 0.
extern u32 image_distance;
// The image's first address: the page before text_start is boot.S's.
static inline size_t image_start(void)
{
    return (size_t)text_start - PAGE_SIZE;
}
// How far the image's addresses are above those for which it is linked.
static inline u32 image_slide(void)
{
    return (u32)image_start() - KERNEL_LOAD;
}
// The address for which code is linked. All that leaves the kernel has these:
// samples, traces, symbols. So kernel.elf explains it, and nobody is told where
// the kernel is.
static inline u32 linked_address(u32 pc)
{
    return pc - image_slide();
}
static inline u32 moved_address(u32 linked)
{
    return linked + image_slide();
}
static inline bool is_in_image(size_t va)
{
    return va >= image_start() && va < (size_t)kernel_end;
}
// Whether some of [base, base + size) is hidden by the image's addresses.
static inline bool is_hidden(paddr_t base, u64 size)
{
    return image_distance && base < (size_t)kernel_end - KERNEL_BASE &&
           base + size > image_start() - KERNEL_BASE;
}

// The direct map; not for what is_hidden.
static inline void *phys_to_virt(paddr_t p)
{
    return (void *)((size_t)p + KERNEL_BASE);
}
// Not for static objects, which are in the image: image_paddr.
static inline paddr_t virt_to_phys(const void *v)
{
    assert_checked(!is_in_image((size_t)v));
    return (size_t)v - KERNEL_BASE;
}
static inline paddr_t image_paddr(const void *v)
{
    assert_checked(is_in_image((size_t)v) || v == kernel_end);
    return (size_t)v - KERNEL_BASE + image_distance;
}

// Creates an empty user half and shares the kernel half. 0 or -ENOMEM.
int pagetable_create(struct pagetable *pt);
// Frees the tables of the user half (not the frames they map).
void pagetable_destroy(struct pagetable *pt);
// The same if every page has been unmapped; makes the next create cheaper.
void pagetable_destroy_empty(struct pagetable *pt);

// Maps one page, replacing any old mapping. -ENOMEM if a table is missing and
// no frame is free. The caller holds the lock that guards `pt` (an address
// space's mutex; the vmap lock for the kernel) and flushes the TLB if needed.
int pagetable_map(struct pagetable *pt, u32 va, paddr_t pa, u32 prot);
// True and *out filled when `va` is mapped.
bool pagetable_lookup(struct pagetable *pt, u32 va, struct mapping *out);
// The same for a large page alone. *end: where that ends, or what the table of
// `va` maps; 0: the end of the address space.
bool pagetable_large(struct pagetable *pt, u32 va, struct mapping *out,
                     u32 *end);
// Unmaps; true and *old filled when something was mapped.
bool pagetable_unmap(struct pagetable *pt, u32 va, struct mapping *old);
// Calls fn for each mapped page in [start, end) except large ones, skipping
// absent tables fast. end 0: the end of the address space.
// fn may change or clear that page by the functions below; `entry` is opaque.
// Stops when fn returns nonzero, and returns that value.
typedef int (*pagetable_fn)(u32 va, void *entry, const struct mapping *m,
                            void *arg);
int pagetable_walk(struct pagetable *pt, u32 start, u32 end, pagetable_fn fn,
                   void *arg);
// Unmaps mapped pages of [start, end), the first PAGE_BATCH at most. Faster
// than a walk that clears them.
#define PAGE_BATCH 64u
struct page_batch {
    u32 count, first, last; // pages; the addresses of the first and the last
    paddr_t frames[PAGE_BATCH];
};
void pagetable_unmap_batch(struct pagetable *pt, u32 start, u32 end,
                           struct page_batch *b);
void pagetable_entry_protect(void *entry, u32 prot);
void pagetable_entry_clear(void *entry);

// Maps the user pages of [start, end) at the same addresses in `to`, which has
// none there; both are read-only from then on. -ENOMEM: only some are shared.
struct page_sharing {
    void (*share)(paddr_t frame); // called for each page
    u32 pages;                    // incremented for each page
    bool narrowed; // set if `from` could write one: flush its TLBs
};
int pagetable_share(struct pagetable *from, struct pagetable *to, u32 start,
                    u32 end, struct page_sharing *s);
// Unmaps the user pages of [start, end) of a table that no CPU has loaded, and
// calls `release` for each of them.
void pagetable_release(struct pagetable *pt, u32 start, u32 end,
                       void (*release)(paddr_t frame));

#ifdef CHECKED // used by the leak check
// Calls fn for each frame that one page of tables (a table or a directory)
// refers to.
void pagetable_scan(const void *table, void (*fn)(paddr_t frame));
// Calls fn for each page of the kernel's own tables.
void pagetable_scan_kernel(void (*fn)(paddr_t table));
#endif

// Loads `pt` on this CPU (interrupts off or preemption disabled).
void pagetable_load(const struct pagetable *pt);

// Flush this CPU's TLB only; kernel/mm/shootdown.c does the TLB shootdown.
void tlb_flush_page(u32 va);
void tlb_flush_user(void);
void tlb_flush_all(void); // global entries too

// Page fault: the address (CR2) and the error code's bits (SDM vol. 3, 4.7).
#define FAULT_PRESENT 1u
#define FAULT_WRITE 2u
#define FAULT_USER 4u
#define FAULT_EXEC 16u

// User copies. They never fault: a bad pointer, or one at or above USER_END,
// yields -EFAULT. They may sleep (page faults); in atomic context an absent
// page is -EFAULT.
int copy_from_user(void *dst, u32 src, size_t n) MUST_CHECK;
int copy_to_user(u32 dst, const void *src, size_t n) MUST_CHECK;
int zero_user(u32 dst, size_t n) MUST_CHECK;
// Copies a NUL-terminated string. Returns its length, -EFAULT, or -ENAMETOOLONG
// if it does not fit `size` with its NUL.
int copy_string_from_user(char *dst, u32 src, size_t size) MUST_CHECK;
// Atomic accesses to a user word (futex, robust lists). 0 or -EFAULT.
int user_load_u32(u32 addr, u32 *value) MUST_CHECK;
int user_store_u32(u32 addr, u32 value) MUST_CHECK;
// FXSAVE and FXRSTOR of FPU_AREA_SIZE bytes, where the running thread's
// registers are live and the CPU has FXSR. -EFAULT also for an address that is
// not a multiple of 16, and for FXRSTOR of reserved bits in MXCSR; the
// registers are then unspecified.
int fxsave_to_user(u32 dst) MUST_CHECK;
int fxrstor_from_user(u32 src) MUST_CHECK;

// The kernel's exception table: if the instruction at *eip may fault on user
// memory, sets *eip to its fix-up and returns true. Used by trap code.
bool fault_fixup(u32 *eip);

// Windows: temporary mappings of any frame, on this CPU. A low frame yields its
// direct address. Preemption is disabled until unmap; at most two nest.
void *window_map(paddr_t frame);
void window_unmap(void *va);

// Maps device memory (uncached, RW, NX) permanently. NULL, with a log message:
// the CPU cannot address some of it, or no space is left.
void *map_device(paddr_t base, size_t size);
// The same for video memory: write-combining, if the CPU has PAT.
void *map_video(paddr_t base, size_t size);
