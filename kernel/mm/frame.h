// Physical memory: frames of 4 KiB in two zones, low (direct-mapped) and high.
#pragma once

#include "arch/mmu.h"
#include "lib/list.h"

enum frame_use { // what a frame is used for: system.physmem, leak checks
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
    struct list node; // free lists; the owner's while allocated
    void *owner;      // slab: its cache
    u32 data;         // the owner's while allocated
#ifdef CHECKED
    u16 taken_by; // who allocated it: kernel/debug/callers.h
    u8 mark;      // the leak check's
#endif
};

#define FRAME_LOW 0u  // from the low zone only: has a direct address
#define FRAME_ANY 1u  // high zone first
#define FRAME_ZERO 2u // filled with zeros

void frame_init(void); // from boot_info; called once, before arch_init_memory
// 2^order contiguous frames with refs 1, or NULL. Does not sleep. Any context
// but NMI; FRAME_ZERO with FRAME_ANY not in interrupts (it takes a window).
struct frame *frame_alloc(u32 order, u32 flags, enum frame_use use);
void frame_ref(struct frame *f);
void frame_unref(struct frame *f); // the last one frees it
u32 frame_refs(const struct frame *f);

paddr_t frame_paddr(const struct frame *f);
struct frame *frame_from_paddr(paddr_t p); // NULL: not RAM we manage
void *frame_va(const struct frame *f);     // low zone only
struct frame *frame_from_va(const void *va);
void frame_copy(struct frame *dst, struct frame *src); // one page, any zone
void frame_zero(struct frame *f);

// Page-sized convenience: one low frame's address, or NULL.
void *page_alloc(enum frame_use use); // zeroed
void page_free(void *page);
// The same for a page that is all zeros again: the next page_alloc is cheap.
void page_free_zeroed(void *page);

struct frame_stats {
    u64 total, unavailable, used, free; // frames; total = used + free
    u64 zone_total[2], zone_free[2];
    u64 by_use[FRAME_USES];
};
void frame_stats(struct frame_stats *out);
u32 frames_total(void); // of these: total and free
u32 frames_free(void);
u32 frames_low(void); // all of the low zone
// Less than 1/32 of memory is free: calls that take much and may fail should
// fail now, so that page faults, which can only kill, go on.
bool frames_scarce(void);

// Panics: memory is too small for something that start-up needs; says how much
// the kernel and the boot modules take.
NORETURN void boot_lacks_memory(const char *for_what);
// The current task gets none any more, not even for page tables: only the
// reserve is left, or what is root's (frame.c).
bool frames_exhausted(void);
// Whether the code that runs may take what is root's: kernel/sched knows. Any
// context but NMI.
UPCALL bool frames_acts_for_root(void);
// Makes boot modules' memory usable RAM.
void frame_release_region(paddr_t base, u64 size);
