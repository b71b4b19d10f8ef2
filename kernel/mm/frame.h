// Physical memory: frames of 4 KiB in two zones, low (direct-mapped) and high.
#pragma once

#include "arch/mmu.h"
#include "lib/list.h"

enum frame_use { // use of a frame, for system.physmem and leak checks
    FRAME_FREE,
    FRAME_KERNEL, // image, boot-time tables
    FRAME_SLAB,
    FRAME_PAGETABLE,
    FRAME_KSTACK,
    FRAME_USER,   // anonymous memory of tasks
    FRAME_FILE,   // tmpfs data
    FRAME_BUFFER, // pipes, rings
    FRAME_USES
};

struct frame {
    u32 refs; // atomic; 0 while free
    u8 use, order, zone, flags;
    struct list node; // free lists; while allocated, for the owner's use
    void *owner;      // slab: its cache
    u32 data;         // while allocated, for the owner's use
#ifdef CHECKED
    u16 allocated_by; // caller that allocated it: kernel/debug/callers.h
    u8 mark;          // used by the leak check
#endif
};

#define FRAME_LOW 0u  // from the low zone only: direct-mapped
#define FRAME_ANY 1u  // high zone first
#define FRAME_ZERO 2u // filled with zeros

void frame_init(void); // from boot_info; called once, before arch_init_memory
struct cpu;
void frame_init_cpu(struct cpu *cpu); // before the CPU allocates
// 2^order contiguous frames with refs 1, or NULL. Does not sleep. Any context
// but NMI; FRAME_ZERO with FRAME_ANY not in interrupts (it takes a window).
struct frame *frame_alloc(u32 order, u32 flags, enum frame_use use);
void frame_ref(struct frame *f);
void frame_unref(struct frame *f); // the last one frees it
u32 frame_refs(const struct frame *f);

paddr_t frame_paddr(const struct frame *f);
struct frame *frame_from_paddr(paddr_t p);   // NULL: not managed RAM
void *frame_va(const struct frame *f);       // low zone only
struct frame *frame_from_va(const void *va); // not in the kernel's image
void frame_copy(struct frame *dst, struct frame *src); // one page, any zone
void frame_zero(struct frame *f);

// Single pages: the address of one low frame, or NULL.
void *page_alloc(enum frame_use use); // zeroed
void page_free(void *page);
// The same for a page that contains only zeros: a later page_alloc need not
// zero it.
void page_free_zeroed(void *page);

struct frame_stats {
    u64 total, unavailable, used, free; // frames; total = used + free
    u64 zone_total[2], zone_free[2];
    u64 by_use[FRAME_USES];
};
void frame_stats(struct frame_stats *out);
u32 frames_total(void); // as frame_stats.total
u32 frames_free(void);  // as frame_stats.free
u32 frames_low(void);   // total of the low zone
// Less than 1/32 of memory is free: calls that need much memory and may fail
// should fail now, to keep memory for page faults, whose failure kills a task.
bool frames_scarce(void);

// Panics because memory is too small for something that start-up needs; prints
// how much the kernel and the boot modules take.
NORETURN void boot_lacks_memory(const char *for_what);
// The current task gets no more frames, not even for page tables: only the
// reserve is left, or root's part (frame.c).
bool frames_exhausted(void);
// Whether the running code may use root's part of memory (kernel/task). Any
// context but NMI.
UPCALL bool frames_acts_for_root(void);
// Frees the memory of a boot module.
void frame_release_region(paddr_t base, u64 size);
