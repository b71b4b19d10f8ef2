// Operations on many pages of a page table: walks, sharing for fork, and the
// release of an address space.
//
// The owner's locking applies, as in pagetable.c.

#include "arch/i386/mm/entry.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"

// The part of a range that is within one table.
struct table_part {
    char *entry, *end; // NULL: no table
    u32 va;            // of the first entry
    u32 next;          // start of the rest of the range
};

static ALWAYS_INLINE struct table_part table_part_at(const struct pagetable *pt,
                                                     u32 va, u32 range_end)
{
    u32 left = table_span() - (va & (table_span() - 1));
    u32 length = MIN(range_end - va, left);
    struct table_part s = { leaf_entry(pt, va), NULL, va, va + length };
    if (s.entry)
        s.end = s.entry + (length >> PAGE_SHIFT) * entry_size();
    return s;
}

// The first used entry from `entry` on, or `end`. In both formats the bits that
// show use are in the first word.
static ALWAYS_INLINE char *used_entry(char *entry, const char *end, u32 size)
{
    while (entry != end &&
           !(READ_ONCE(*(u32 *)entry) & (ENTRY_PRESENT | ENTRY_HIDDEN)))
        entry += size;
    return entry;
}

#define FOR_EACH_USED(entry, part, size)                             \
    for (char *entry = used_entry((part)->entry, (part)->end, size); \
         entry != (part)->end;                                       \
         entry = used_entry(entry + (size), (part)->end, size))

// --- walking ----------------------------------------------------------------

static int walk_table(const struct table_part *s, pagetable_fn fn, void *arg)
{
    u32 size = entry_size();
    FOR_EACH_USED(entry, s, size)
    {
        struct mapping m;
        u32 index = (u32)(entry - s->entry) / size;
        entry_decode(entry_read(entry), &m);
        int err = fn(s->va + (index << PAGE_SHIFT), entry, &m, arg);
        if (err)
            return err;
    }
    return 0;
}

int pagetable_walk(struct pagetable *pt, u32 start, u32 end, pagetable_fn fn,
                   void *arg)
{
    assert(start <= end || !end);
    while (start != end) {
        struct table_part s = table_part_at(pt, start, end);
        int err = s.entry ? walk_table(&s, fn, arg) : 0;
        if (err)
            return err;
        start = s.next;
    }
    return 0;
}

// Returns whether the batch is full.
static bool unmap_table(const struct table_part *s, struct page_batch *b)
{
    u32 size = entry_size(), n = b->count;
    char *last = NULL;
    FOR_EACH_USED(entry, s, size)
    {
        if (!n)
            b->first = s->va + ((u32)(entry - s->entry) / size << PAGE_SHIFT);
        last = entry;
        b->frames[n++] = entry_exchange(entry, 0) & ENTRY_FRAME;
        if (n == PAGE_BATCH)
            break;
    }
    if (last)
        b->last = s->va + ((u32)(last - s->entry) / size << PAGE_SHIFT);
    b->count = n;
    return n == PAGE_BATCH;
}

void pagetable_unmap_batch(struct pagetable *pt, u32 start, u32 end,
                           struct page_batch *b)
{
    assert(end <= USER_END);
    b->count = 0;
    while (start < end) {
        struct table_part s = table_part_at(pt, start, end);
        if (s.entry && unmap_table(&s, b))
            return;
        start = s.next;
    }
}

// Keeps the accessed and dirty bits, even if an MMU sets them concurrently.
void pagetable_entry_protect(void *entry, u32 prot)
{
    u64 old, new;
    do {
        old = entry_read(entry);
        new = entry_make(old & ENTRY_FRAME, prot) |
              (old & (ENTRY_ACCESSED | ENTRY_DIRTY));
    } while (!entry_replace(entry, old, new));
}

void pagetable_entry_clear(void *entry)
{
    entry_exchange(entry, 0);
}

// --- fork -------------------------------------------------------------------

// Maps the page read-only in both tables.
static ALWAYS_INLINE void share_entry(void *entry, void *copy,
                                      struct page_sharing *s)
{
    u64 e = entry_read(entry);
    if (e & ENTRY_WRITE) {
        entry_forbid_write(entry);
        s->narrowed = true;
    }
    entry_set(copy, e & ~(u64)(ENTRY_WRITE | ENTRY_ACCESSED | ENTRY_DIRTY));
    s->share(e & ENTRY_FRAME);
    s->pages++;
}

static int share_table(const struct table_part *from, struct pagetable *to,
                       struct page_sharing *s)
{
    u32 size = entry_size();
    char *copies = NULL;
    FOR_EACH_USED(entry, from, size)
    {
        if (!copies)
            copies = leaf_entry(to, from->va);
        if (!copies)
            copies = leaf_make(to, from->va);
        if (!copies)
            return -ENOMEM;
        share_entry(entry, copies + (entry - from->entry), s);
    }
    return 0;
}

int pagetable_share(struct pagetable *from, struct pagetable *to, u32 start,
                    u32 end, struct page_sharing *s)
{
    assert(start < end && end <= USER_END);
    while (start < end) {
        struct table_part part = table_part_at(from, start, end);
        int err = part.entry ? share_table(&part, to, s) : 0;
        if (err)
            return err;
        start = part.next;
    }
    return 0;
}

// --- release ----------------------------------------------------------------

void pagetable_release(struct pagetable *pt, u32 start, u32 end,
                       void (*release)(paddr_t frame))
{
    u32 size = entry_size();
    assert(start < end && end <= USER_END);
    while (start < end) {
        struct table_part part = table_part_at(pt, start, end);
        FOR_EACH_USED(entry, &part, size)
        {
            u64 e = entry_read(entry);
            entry_set(entry, 0); // no MMU uses this table
            release(e & ENTRY_FRAME);
        }
        start = part.next;
    }
}
