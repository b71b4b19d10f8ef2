// The choice of MTRRs; see mtrr_choose.h. A range has a power of two of bytes
// and is aligned to its size ("Range Size and Alignment Requirement"), so an
// area takes several, the largest first. Where ranges overlap, UC wins; but for
// equal types, the result of other overlaps with WC is undefined ("MTRR
// Precedences").
#include "arch/i386/cpu/mtrr_choose.h"
#include "lib/assert.h"

#define PAGE 4096u
#define FIXED_END 0x100000u // below it fixed ranges say the type
#define BLOCKS_MAX 64u

struct block {
    u64 base, size;
};

// The fewest aligned powers of two that are [at, end). Their number.
static u32 split(u64 at, u64 end, struct block out[BLOCKS_MAX])
{
    u32 n = 0;
    while (at < end) {
        u64 size = PAGE;
        while (!(at & size) && size * 2 <= end - at)
            size *= 2;
        assert(n < BLOCKS_MAX);
        out[n++] = (struct block){ at, size };
        at += size;
    }
    return n;
}

static u64 mask_of(const struct mtrrs *m, u64 size)
{
    return ~(size - 1) & m->address & ~(u64)(PAGE - 1);
}

static bool overlaps(const struct mtrrs *m, const struct mtrr_range *r,
                     const struct block *b)
{
    u64 both = MTRR_ADDRESS(r->mask) & mask_of(m, b->size);
    return r->mask & MTRR_ON && !((r->base ^ b->base) & both);
}

static bool covers(const struct mtrr_range *r, const struct block *b)
{
    u64 mask = MTRR_ADDRESS(r->mask);
    return r->mask & MTRR_ON && !(mask & (b->size - 1)) &&
           !((r->base ^ b->base) & mask);
}

static bool is_combining(const struct mtrrs *m, const struct block *b)
{
    for (u32 i = 0; i < m->count; i++) {
        if (MTRR_TYPE(m->at[i].base) == MTRR_WC && covers(&m->at[i], b))
            return true;
    }
    return false;
}

static const char *conflict(const struct mtrrs *m, const struct block *b)
{
    const char *why = NULL;
    for (u32 i = 0; i < m->count; i++) {
        u32 type = MTRR_TYPE(m->at[i].base);
        if (type == MTRR_WC || !overlaps(m, &m->at[i], b))
            continue;
        if (type == MTRR_UC)
            return "an MTRR of the firmware makes it uncacheable";
        why = "an MTRR of the firmware gives it another type";
    }
    return why;
}

static bool add(struct mtrrs *m, const struct block *b)
{
    for (u32 i = 0; i < m->count; i++) {
        if (m->at[i].mask & MTRR_ON)
            continue;
        m->at[i].base = b->base | MTRR_WC;
        m->at[i].mask = mask_of(m, b->size) | MTRR_ON;
        m->added |= 1u << i;
        return true;
    }
    return false;
}

static struct block *largest(struct block *b, u32 n)
{
    struct block *found = b;
    for (u32 i = 1; i < n; i++) {
        if (b[i].size > found->size)
            found = &b[i];
    }
    return found;
}

static const char *unusable(const struct mtrrs *m, u64 base, u64 end)
{
    if (!(m->standard & MTRR_ON))
        return "the firmware has left the MTRRs off";
    if (!(m->cap & MTRR_CAP_WC))
        return "its MTRRs do not know write-combining";
    if (base < FIXED_END || (end - 1) & ~m->address)
        return "no MTRR reaches its address";
    return NULL;
}

u64 mtrr_choose(struct mtrrs *m, u64 base, u64 size, const char **why)
{
    struct block blocks[BLOCKS_MAX];
    u64 first = base & ~(u64)(PAGE - 1);
    u64 end = (base + size + PAGE - 1) & ~(u64)(PAGE - 1), done = 0;
    assert(size && m->count <= MTRRS_MAX);
    *why = unusable(m, base, end);
    if (*why)
        return 0;
    u32 n = split(first, end, blocks);
    for (u32 i = 0; i < n && !*why; i++)
        *why = conflict(m, &blocks[i]);
    if (*why)
        return 0;
    for (u32 i = 0; i < n; i++) {
        struct block *b = largest(blocks, n);
        if (!is_combining(m, b) && !add(m, b)) {
            *why = "no more MTRRs are free";
            break;
        }
        done += b->size;
        b->size = 0;
    }
    return done < size ? done : size;
}
