// Page-table entries in both formats: 64-bit (PAE) and 32-bit (SDM vol. 3, 4.3,
// 4.4). In code an entry's value is a u64 in either format, and its address a
// void *.
//
// A page may be mapped without any access (PROT_NONE): its entry keeps the
// frame, is not present and has ENTRY_HIDDEN set.
#pragma once

#include "arch/mmu.h"

#define ENTRY_PRESENT 0x001u
#define ENTRY_WRITE 0x002u
#define ENTRY_USER 0x004u
#define ENTRY_COMBINING 0x008u // PWT alone: index 1 of the PAT (cpu/init.c)
#define ENTRY_UNCACHED 0x018u  // PCD | PWT
#define ENTRY_ACCESSED 0x020u
#define ENTRY_DIRTY 0x040u
#define ENTRY_LARGE 0x080u // in a directory
#define ENTRY_GLOBAL 0x100u
#define ENTRY_HIDDEN 0x200u // software bit: the CPU ignores it
#define ENTRY_NX (1ull << 63)
#define ENTRY_FRAME 0x000ffffffffff000ull

extern bool mmu_pae; // PAE format; fixed before the first C code runs
extern bool mmu_nx;  // ENTRY_NX may be used (EFER.NXE is set)

static ALWAYS_INLINE u32 entries_per_table(void)
{
    return mmu_pae ? 512 : 1024;
}
static ALWAYS_INLINE u32 entry_size(void)
{
    return mmu_pae ? sizeof(u64) : sizeof(u32);
}
// Bytes covered by one directory entry: 2 or 4 MiB.
static ALWAYS_INLINE u32 table_span(void)
{
    return mmu_pae ? MIB(2) : MIB(4);
}

// The MMU may set the accessed and dirty bits at any time.
static ALWAYS_INLINE u64 entry_read(const void *entry)
{
    return mmu_pae ? READ_ONCE(*(const u64 *)entry)
                   : READ_ONCE(*(const u32 *)entry);
}

// Atomic: an MMU of another CPU may use the entry, or set its accessed and
// dirty bits. Returns the old value.
static ALWAYS_INLINE u64 entry_exchange(void *entry, u64 value)
{
    if (!mmu_pae)
        return __atomic_exchange_n((u32 *)entry, (u32)value, __ATOMIC_SEQ_CST);
    u64 old = READ_ONCE(*(u64 *)entry);
    __asm__ volatile("1:\tclc\n\t" // sensor_count_change
                     "lock cmpxchg8b %0\n\t"
                     "jnz 1b"
                     : "+m"(*(u64 *)entry), "+A"(old)
                     : "b"((u32)value), "c"((u32)(value >> 32))
                     : "memory", "cc");
    return old;
}

// Compare and exchange: true if the entry was `old` and is now `value`.
static ALWAYS_INLINE bool entry_replace(void *entry, u64 old, u64 value)
{
    if (!mmu_pae) {
        u32 was = (u32)old;
        return __atomic_compare_exchange_n((u32 *)entry, &was, (u32)value,
                                           false, __ATOMIC_SEQ_CST,
                                           __ATOMIC_RELAXED);
    }
    bool done;
    __asm__ volatile("clc\n\t" // sensor_count_change
                     "lock cmpxchg8b %0\n\t"
                     "sete %b1"
                     : "+m"(*(u64 *)entry), "=q"(done), "+A"(old)
                     : "b"((u32)value), "c"((u32)(value >> 32))
                     : "memory", "cc");
    return done;
}

// For an entry that is not present: the word with the present bit is written
// last, so MMUs ignore the entry until it is complete.
static ALWAYS_INLINE void entry_set(void *entry, u64 value)
{
    if (mmu_pae) {
        WRITE_ONCE(((u32 *)entry)[1], (u32)(value >> 32));
        barrier();
    }
    WRITE_ONCE(*(u32 *)entry, (u32)value);
}

static ALWAYS_INLINE bool entry_used(u64 e)
{
    return e & (ENTRY_PRESENT | ENTRY_HIDDEN);
}

// Clears the write bit; accessed and dirty bits that MMUs set concurrently are
// kept.
static ALWAYS_INLINE void entry_forbid_write(void *entry)
{
    __atomic_fetch_and((u32 *)entry, ~ENTRY_WRITE, __ATOMIC_SEQ_CST);
}

// The bits of `prot` are shifted into the entry's positions, without branches.
_Static_assert(PROT_W == ENTRY_WRITE && PROT_USER >> 1 == ENTRY_USER &&
                   PROT_GLOBAL << 2 == ENTRY_GLOBAL &&
                   PROT_UNCACHED >> 1 == ENTRY_UNCACHED &&
                   PROT_COMBINING >> 1 == ENTRY_COMBINING,
               "entry_make shifts");
static ALWAYS_INLINE u64 entry_make(paddr_t frame, u32 prot)
{
    u32 low = prot & (PROT_R | PROT_W | PROT_X) ? ENTRY_PRESENT : ENTRY_HIDDEN;
    low |= prot & PROT_W;
    low |= (prot & PROT_USER) >> 1;
    low |= (prot & PROT_UNCACHED) >> 1;
    low |= (prot & PROT_GLOBAL) << 2;
    u64 e = (frame & ENTRY_FRAME) | low;
    return mmu_nx && !(prot & PROT_X) ? e | ENTRY_NX : e;
}

static ALWAYS_INLINE void entry_decode(u64 e, struct mapping *m)
{
    m->frame = e & ENTRY_FRAME;
    m->accessed = e & ENTRY_ACCESSED;
    m->dirty = e & ENTRY_DIRTY;
    u32 prot = 0;
    if (e & ENTRY_PRESENT) {
        prot = PROT_R;
        if (e & ENTRY_WRITE)
            prot |= PROT_W;
        if (!(e & ENTRY_NX))
            prot |= PROT_X;
    }
    if (e & ENTRY_USER)
        prot |= PROT_USER;
    prot |= (u32)(e & ENTRY_UNCACHED) << 1;
    if (e & ENTRY_GLOBAL)
        prot |= PROT_GLOBAL;
    m->prot = prot;
}

// Address of the leaf entry of `va`; NULL if there is no table, or a large
// page.
void *leaf_entry(const struct pagetable *pt, u32 va);
void *leaf_entry_without_pae(const struct pagetable *pt, u32 va);
// (Tables are in the direct map, so the low half of an entry gives their
// address.)
static ALWAYS_INLINE void *leaf_entry_inline(const struct pagetable *pt, u32 va)
{
    if (unlikely(!mmu_pae))
        return leaf_entry_without_pae(pt, va);
    u32 pointer = (u32)((const u64 *)pt->root)[va >> 30];
    if (!(pointer & ENTRY_PRESENT))
        return NULL;
    const u64 *directory = phys_to_virt(pointer & PAGE_MASK);
    u32 e = READ_ONCE(*(const u32 *)&directory[va >> 21 & 511]);
    if ((e & (ENTRY_PRESENT | ENTRY_LARGE)) != ENTRY_PRESENT)
        return NULL;
    u64 *table = phys_to_virt(e & PAGE_MASK);
    void *entry = &table[va >> PAGE_SHIFT & 511];
    ASSUME(entry);
    return entry;
}
// The same, but allocates a missing table. NULL: out of memory.
void *leaf_make(struct pagetable *pt, u32 va);

// memory.c: a zeroed page for a table, or NULL.
void *table_alloc(void);
