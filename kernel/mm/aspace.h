// Address spaces: sorted areas over page tables.
//
// Locking: `lock` (a mutex) guards areas and user page tables. Order: it must
// not be taken with a spinlock of the file system held. A page fault can occur
// while the thread holds a pipe, tty or vnode mutex, so the fault path takes
// none of those.
#pragma once

#include "arch/mmu.h"
#include "kernel/sync/mutex.h"
#include "lib/tree.h"

struct vnode;

#define AREA_SHARED 1u
#define AREA_STACK 2u // grows down to the rlimit; a guard page stays below it
#define AREA_HEAP 4u  // brk
#define AREA_NO_WRITE 8u // shared, of a file that is not open for writing

struct area {
    struct list node;
    struct tree_node tree_node;
    u32 gap;         // in the tree: free bytes below the area
    u32 longest_gap; // in the tree: largest `gap` of the subtree
    u32 start, end;  // page-aligned, end exclusive
    u32 prot;        // PROT_R|W|X
    u32 flags;
    struct vnode *vnode;         // NULL: anonymous; else a reference
    u64 offset;                  // in the vnode of `start`, page-aligned
    struct shared_pages *shared; // anonymous shared memory (fork shares it)
};

struct aspace {
    u32 refs; // tasks that use it; atomic
    struct mutex lock;
    struct list areas;     // sorted by address
    struct area *hint;     // last found
    struct tree area_tree; // over the list, when there are many
    u32 area_count;        // marked access: read at any time
    struct pagetable pt;
    struct cpu_set cpus; // that may have it in their TLB; atomic
    u32 brk_start, brk;
    // Bytes: of the stack, of all areas, of private writable areas; ~0: no
    // limit. Marked access: setrlimit changes them at any time.
    u32 stack_limit, size_limit, data_limit;
    u32 mmap_shift; // bytes that mappings end lower: the stack begins lower
    u32 vdso;       // address of the vDSO (kernel/exec/vdso.h)
    // The file that it runs, or NULL. Writers of the file are excluded.
    struct vnode *program;
    // Changed with `lock` held, read at any time for statistics (marked).
    u32 virtual_pages, resident_pages;
    u32 virtual_peak, resident_peak; // updated before either is reduced
};

// The highest values so far. Any context.
static inline u32 aspace_peak_virtual(const struct aspace *as)
{
    u32 now = READ_ONCE(as->virtual_pages);
    return MAX(now, READ_ONCE(as->virtual_peak));
}
static inline u32 aspace_peak_resident(const struct aspace *as)
{
    u32 now = READ_ONCE(as->resident_pages);
    return MAX(now, READ_ONCE(as->resident_peak));
}

int aspace_create(struct aspace **out);
void aspace_ref(struct aspace *as);
void aspace_unref(struct aspace *as); // the last one frees everything; sleeps
// Sets the program's file, once. The caller excludes writers
// (vnode_begin_running).
void aspace_set_program(struct aspace *as, struct vnode *program);
// Copy-on-write duplicate of `src` (fork). 0, -ENOMEM.
int aspace_fork(struct aspace *src, struct aspace **out);
// Loads the page tables of `as` on this CPU. Preemption disabled.
void aspace_switch(struct aspace *as);

#define MAP_AT_EXACTLY 1u // replace existing mappings (MAP_FIXED)
#define MAP_NO_REPLACE 2u // fail with -EEXIST instead
#define MAP_POPULATE_NOW 4u

// mmap: adds an area of `length` bytes; its start is stored in *addr. `hint` 0:
// the kernel chooses, top down. -ENOMEM, -EINVAL, -EEXIST. References the
// vnode.
int aspace_map(struct aspace *as, u32 hint, u32 length, u32 prot,
               u32 area_flags, u32 map_flags, struct vnode *vn, u64 offset,
               u32 *addr);
// Maps existing shared pages from `offset` on at exactly `addr`, and populates
// the range. References the pages.
struct shared_pages;
int aspace_map_shared(struct aspace *as, u32 addr, u32 length, u32 prot,
                      u32 area_flags, struct shared_pages *pages, u32 offset);
// Maps all of `pages` read-only at a free range; its start is stored in *addr.
int aspace_map_to_read(struct aspace *as, struct shared_pages *pages,
                       u32 length, u32 *addr);
int aspace_unmap(struct aspace *as, u32 addr, u32 length);
int aspace_protect(struct aspace *as, u32 addr, u32 length, u32 prot);
int aspace_remap(struct aspace *as, u32 old, u32 old_len, u32 new_len,
                 bool may_move, bool fixed, u32 new_addr, u32 *out);
int aspace_discard(struct aspace *as, u32 addr, u32 length); // MADV_DONTNEED
// mincore: one byte for each page, 1: in memory. -ENOMEM: part of the range is
// not mapped.
int aspace_resident(struct aspace *as, u32 addr, u32 pages, u8 *out);
// Whether all of [addr, addr + length) is mapped. 0 or -ENOMEM.
int aspace_check_mapped(struct aspace *as, u32 addr, u32 length);
// The object and the offset in it behind `addr`, if it is in shared memory: the
// same for all address spaces that map it. If it is private, both are left as
// they are. -EFAULT: it is not mapped, or by no access.
int aspace_shared_object(struct aspace *as, u32 addr, const void **object,
                         u32 *offset);
u32 aspace_set_brk(struct aspace *as, u32 brk); // returns the current brk

// Handles a page fault of `current`. 0: retry the access. -EFAULT: SIGSEGV
// (SEGV_MAPERR), -EACCES: SIGSEGV (SEGV_ACCERR), -EIO: SIGBUS (beyond the
// file), -ENOMEM: SIGKILL.
int aspace_fault(struct aspace *as, u32 addr, u32 error_code);

// Calls fn for each area with the lock held (/proc/PID/maps). Stops when fn
// returns nonzero.
int aspace_for_each_area(struct aspace *as, int (*fn)(struct area *, void *),
                         void *arg);
// Reads/writes memory of another (or a new, not yet loaded) address space,
// faulting pages in. Bytes done, -EFAULT or -ENOMEM.
int aspace_write(struct aspace *as, u32 addr, const void *src, size_t n);
int aspace_read(struct aspace *as, u32 addr, void *dst, size_t n);

// TLB shootdown on all CPUs that may hold entries of `as`, this one included.
// `pages` 0 or > 32: everything. Interrupts on.
void tlb_shootdown(struct aspace *as, u32 addr, u32 pages);
