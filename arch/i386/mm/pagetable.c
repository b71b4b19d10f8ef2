// Page tables: mapping and lookup; creation and destruction of user halves.
// Operations on many pages at once are in table_range.c.
//
// The owner of a page table serialises its changes (arch/mmu.h). MMUs run
// against them without a lock, hence the atomic operations on present entries;
// backtraces, which only read, do too.
//
// With PAE the CPU loads the four directory pointers into registers together
// with CR3: they are complete at creation and never change. `data` of a
// directory's struct frame has a bit for each group of its entries that has
// held a table, so that destruction need not read all of them.

#include "arch/i386/mm/entry.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "lib/string.h"

#define POINTERS 4u // of the PAE directory pointer table
#define USER_POINTERS 3u
#define GROUPS 32u

bool mmu_pae, mmu_nx;
struct pagetable kernel_pagetable;

struct pointer_table {
    u64 entry[POINTERS];
} __attribute__((aligned(32)));
SLAB_CACHE(pointer_cache, struct pointer_table);

static ALWAYS_INLINE void *entry_at(void *table, u32 index)
{
    return (char *)table + index * entry_size();
}

// The directory for `va`, or NULL: the kernel's own table has no user half.
static ALWAYS_INLINE void *directory_of(const struct pagetable *pt, u32 va)
{
    if (!mmu_pae)
        return pt->root;
    u64 e = ((const struct pointer_table *)pt->root)->entry[va >> 30];
    return e & ENTRY_PRESENT ? phys_to_virt(e & ENTRY_FRAME) : NULL;
}

static ALWAYS_INLINE u32 directory_index(u32 va)
{
    return mmu_pae ? va >> 21 & 511 : va >> 22;
}

static ALWAYS_INLINE void *leaf_in(u64 directory_entry, u32 va)
{
    void *table = phys_to_virt(directory_entry & ENTRY_FRAME);
    return entry_at(table, va >> PAGE_SHIFT & (entries_per_table() - 1));
}

static ALWAYS_INLINE bool is_table(u32 directory_entry)
{
    return (directory_entry & (ENTRY_PRESENT | ENTRY_LARGE)) == ENTRY_PRESENT;
}

NOINLINE NOTRACE void *leaf_entry_without_pae(const struct pagetable *pt,
                                              u32 va)
{
    u32 e = (u32)entry_read(entry_at(pt->root, directory_index(va)));
    return is_table(e) ? leaf_in(e, va) : NULL;
}

NOTRACE void *leaf_entry(const struct pagetable *pt, u32 va)
{
    return leaf_entry_inline(pt, va);
}

// --- single pages

static ALWAYS_INLINE u32 group_of(u32 index)
{
    return index / (entries_per_table() / GROUPS);
}

NOINLINE void *leaf_make(struct pagetable *pt, u32 va)
{
    void *directory = directory_of(pt, va);
    assert(directory);
    u32 index = directory_index(va);
    void *entry = entry_at(directory, index);
    assert(!(entry_read(entry) & ENTRY_PRESENT)); // a large page is not split
    void *table = table_alloc();
    if (!table)
        return NULL;
    u64 e = virt_to_phys(table) | ENTRY_PRESENT | ENTRY_WRITE;
    if (va < USER_END) {
        e |= ENTRY_USER;
        frame_from_va(directory)->data |= 1u << group_of(index);
    }
    entry_set(entry, e);
    ADD_ONCE(pt->tables, 1);
    return leaf_in(e, va);
}

int pagetable_map(struct pagetable *pt, u32 va, paddr_t pa, u32 prot)
{
    void *entry = leaf_entry_inline(pt, va);
    if (unlikely(!entry)) {
        entry = leaf_make(pt, va);
        if (!entry)
            return -ENOMEM;
    }
    u64 value = entry_make(pa, prot);
    if (entry_read(entry) & ENTRY_PRESENT)
        entry_exchange(entry, value);
    else
        entry_set(entry, value);
    return 0;
}

static NOINLINE NOTRACE bool lookup_large(struct pagetable *pt, u32 va,
                                          struct mapping *out)
{
    assert(pt);
    void *directory = directory_of(pt, va);
    if (!directory)
        return false;
    u64 e = entry_read(entry_at(directory, directory_index(va)));
    if (!(e & ENTRY_PRESENT) || !(e & ENTRY_LARGE))
        return false;
    entry_decode(e, out);
    out->frame &= ~(u64)(table_span() - 1);
    out->frame |= va & (table_span() - 1) & PAGE_MASK;
    return true;
}

NOTRACE bool pagetable_lookup(struct pagetable *pt, u32 va, struct mapping *out)
{
    void *entry = leaf_entry_inline(pt, va);
    if (!entry)
        return lookup_large(pt, va, out);
    u64 e = entry_read(entry);
    if (!entry_used(e))
        return false;
    entry_decode(e, out);
    return true;
}

bool pagetable_large(struct pagetable *pt, u32 va, struct mapping *out,
                     u32 *end)
{
    *end = (va & ~(table_span() - 1)) + table_span();
    return lookup_large(pt, va, out);
}

bool pagetable_unmap(struct pagetable *pt, u32 va, struct mapping *old)
{
    assert(va % PAGE_SIZE == 0);
    void *entry = leaf_entry(pt, va);
    if (!entry || !entry_used(entry_read(entry)))
        return false;
    entry_decode(entry_exchange(entry, 0), old);
    return true;
}

// --- whole tables

// Frees the tables below a directory and clears its entries.
static void free_tables(void *directory, void (*free)(void *page))
{
    struct frame *f = frame_from_va(directory);
    u32 per_group = entries_per_table() / GROUPS;
    while (f->data) {
        u32 group = (u32)__builtin_ctz(f->data);
        f->data &= f->data - 1;
        for (u32 i = group * per_group; i < (group + 1) * per_group; i++) {
            void *entry = entry_at(directory, i);
            u64 e = entry_read(entry);
            if (!(e & ENTRY_PRESENT))
                continue;
            entry_set(entry, 0);
            free(phys_to_virt(e & ENTRY_FRAME));
        }
    }
}

static void *directory_alloc(void)
{
    void *directory = table_alloc();
    if (directory)
        frame_from_va(directory)->data = 0;
    return directory;
}

static int create_pae(struct pagetable *pt)
{
    struct pointer_table *kernel = kernel_pagetable.root;
    struct pointer_table *p = slab_alloc(&pointer_cache);
    if (!p)
        return -ENOMEM;
    for (u32 i = 0; i < USER_POINTERS; i++) {
        void *directory = directory_alloc();
        if (!directory) {
            while (i--)
                page_free(phys_to_virt(p->entry[i] & ENTRY_FRAME));
            slab_free(&pointer_cache, p);
            return -ENOMEM;
        }
        p->entry[i] = virt_to_phys(directory) | ENTRY_PRESENT;
    }
    p->entry[USER_POINTERS] = kernel->entry[USER_POINTERS];
    pt->root = p;
    return 0;
}

static int create_two_level(struct pagetable *pt)
{
    u32 *directory = directory_alloc();
    if (!directory)
        return -ENOMEM;
    u32 first = directory_index(KERNEL_BASE);
    memcpy(directory + first, (u32 *)kernel_pagetable.root + first,
           (entries_per_table() - first) * sizeof(u32));
    pt->root = directory;
    return 0;
}

int pagetable_create(struct pagetable *pt)
{
    int err = mmu_pae ? create_pae(pt) : create_two_level(pt);
    if (err)
        return err;
    pt->paddr = virt_to_phys(pt->root);
    pt->tables = 0;
    return 0;
}

static void destroy(struct pagetable *pt, void (*free)(void *page))
{
    assert(pt != &kernel_pagetable && pt->root);
    if (mmu_pae) {
        struct pointer_table *p = pt->root;
        for (u32 i = 0; i < USER_POINTERS; i++) {
            void *directory = phys_to_virt(p->entry[i] & ENTRY_FRAME);
            free_tables(directory, free);
            page_free_zeroed(directory);
        }
        slab_free(&pointer_cache, p);
    } else {
        free_tables(pt->root, free); // only the user half has groups
        page_free(pt->root);
    }
    pt->root = NULL;
    pt->paddr = 0;
}

void pagetable_destroy(struct pagetable *pt)
{
    destroy(pt, page_free);
}

// Empty tables are zeroed pages, which the next allocation need not clear.
void pagetable_destroy_empty(struct pagetable *pt)
{
    destroy(pt, page_free_zeroed);
}
