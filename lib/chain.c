#include "lib/chain.h"

#include "lib/assert.h"

static bool row_of(const struct chain_program *p, u32 pc, struct cfi_row *row)
{
    const struct cfi_entry *e = cfi_find(p->entries, p->count, pc);
    return e && cfi_row_at(&p->sections[e->section], e, pc, row);
}

// The word of the stack at `at`.
static bool word_at(const struct chain_sample *s, u32 at, u32 *out)
{
    assert(s->stack_words >= 2);
    u32 offset = at - s->stack[0];
    if (offset & 3 || offset / 4 >= s->stack_words - 2)
        return false;
    *out = s->stack[2 + offset / 4];
    return true;
}

// The callers of the innermost function that the frames do not tell, into
// `out`.
static u32 find_missing(const struct chain_program *p,
                        const struct chain_sample *s, u32 *out)
{
    u32 esp = s->stack[0], frame = s->stack[1], pc = s->pc[0], n = 0;
    struct cfi_row row;
    while (n < CHAIN_MORE && row_of(p, pc, &row) && !row.by_ebp) {
        u32 cfa = esp + (u32)row.cfa_offset, back;
        // ebp still is, or is again, the frame of this function itself: the
        // frames tell all.
        if (row.ebp_saved && frame == cfa + (u32)row.ebp_offset)
            break;
        if (!word_at(s, cfa - 4, &back) || !back)
            break;
        out[n++] = back;
        pc = back - 1;
        esp = cfa;
    }
    return n;
}

u32 chain_complete(const struct chain_program *program,
                   const struct chain_sample *s, u32 *out)
{
    u32 n = 0;
    if (!s->depth)
        return 0;
    out[n++] = s->pc[0];
    if (program && s->stack_words >= 2)
        n += find_missing(program, s, out + n);
    for (u32 i = 1; i < s->depth; i++)
        out[n++] = s->pc[i];
    return n;
}
