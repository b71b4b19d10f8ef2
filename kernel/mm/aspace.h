// Address spaces: sorted areas over page tables.
//
// Locking: `lock` (a mutex) guards areas and user page tables. Order: an
// address space's mutex may be taken while holding none of the file system's
// spinlocks; faults may come while a caller holds pipe, tty or vnode mutexes,
// so the fault path takes none of those.
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
    u32 gap;         // in the tree: free bytes below it,
    u32 longest_gap; // and the most of them in its subtree
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
    u32 area_count;        // marked: read at any time
    struct pagetable pt;
    u32 cpus; // bit mask: may have it in their TLB; atomic
    u32 brk_start, brk;
    // Bytes, of the stack, of all areas and of those that are private and
    // writable; ~0: no limit. Marked: setrlimit changes them at any time.
    u32 stack_limit, size_limit, data_limit;
    u32 mmap_shift; // mappings end so much lower: the stack begins lower
    u32 vdso;       // where its image is (kernel/exec/vdso.h)
    // The file that it runs, which nobody may write to meanwhile. Or NULL.
    struct vnode *program;
    // Changed under `lock`, read at any time for statistics: marked.
    u32 virtual_pages, resident_pages;
    u32 virtual_peak, resident_peak; // when either last became less
};

// The most there were at once. Any context.
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
// Once, of a file that does not change yet (vnode_begin_running).
void aspace_set_program(struct aspace *as, struct vnode *program);
// Copy-on-write duplicate of `src` (fork). 0, -ENOMEM.
int aspace_fork(struct aspace *src, struct aspace **out);
// Makes it current on this CPU (NULL: only kernel). Preemption disabled.
void aspace_switch(struct aspace *as);

#define MAP_AT_EXACTLY 1u // replace what is there (MAP_FIXED)
#define MAP_NO_REPLACE 2u // fail with -EEXIST instead
#define MAP_POPULATE_NOW 4u

// Adds an area of `length` bytes. `hint` 0: the kernel chooses, top down.
// *addr gets the place. -ENOMEM, -EINVAL, -EEXIST. References the vnode.
int aspace_map(struct aspace *as, u32 hint, u32 length, u32 prot,
               u32 area_flags, u32 map_flags, struct vnode *vn, u64 offset,
               u32 *addr);
// The same at exactly `addr` for pages that are shared already, from `offset`
// on; they are there at once. References them.
struct shared_pages;
int aspace_map_shared(struct aspace *as, u32 addr, u32 length, u32 prot,
                      u32 area_flags, struct shared_pages *pages, u32 offset);
// All of such pages where there is room, to be read only. *addr gets the place.
int aspace_map_to_read(struct aspace *as, struct shared_pages *pages,
                       u32 length, u32 *addr);
int aspace_unmap(struct aspace *as, u32 addr, u32 length);
int aspace_protect(struct aspace *as, u32 addr, u32 length, u32 prot);
int aspace_remap(struct aspace *as, u32 old, u32 old_len, u32 new_len,
                 bool may_move, bool fixed, u32 new_addr, u32 *out);
int aspace_discard(struct aspace *as, u32 addr, u32 length); // MADV_DONTNEED
u32 aspace_set_brk(struct aspace *as, u32 brk); // returns the brk in force

// A page fault of `current`. 0: go on. -EFAULT: SIGSEGV (SEGV_MAPERR), -EACCES:
// SIGSEGV (SEGV_ACCERR), -EIO: SIGBUS (beyond the file), -ENOMEM: SIGKILL.
int aspace_fault(struct aspace *as, u32 addr, u32 error_code);

// Calls fn for each area, locked (/proc/PID/maps). Stops at nonzero.
int aspace_for_each_area(struct aspace *as, int (*fn)(struct area *, void *),
                         void *arg);
// Reads/writes memory of another (or a new, not yet loaded) address space,
// faulting pages in. Bytes done, -EFAULT or -ENOMEM.
int aspace_write(struct aspace *as, u32 addr, const void *src, size_t n);
int aspace_read(struct aspace *as, u32 addr, void *dst, size_t n);

// TLB shootdown on all CPUs that may hold entries of `as`, this one included.
// `pages` 0 or > 32: everything. Interrupts on.
void tlb_shootdown(struct aspace *as, u32 addr, u32 pages);
