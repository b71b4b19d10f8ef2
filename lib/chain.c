#include "lib/chain.h"

#include "lib/assert.h"
#include "lib/string.h"

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
static u32 find_missing(struct row_cache *rows, const struct cfi_program *p,
                        const struct chain_sample *s, u32 *out)
{
    u32 esp = s->stack[0], frame = s->stack[1], pc = s->pc[0], n = 0;
    const struct cfi_row *row;
    while (n < CHAIN_MORE && (row = row_cache_find(rows, p, pc)) &&
           !row->by_ebp) {
        u32 cfa = esp + (u32)row->cfa_offset, back;
        // ebp still is, or is again, the frame of this function itself: the
        // frames tell all.
        if (row->ebp_saved && frame == cfa + (u32)row->ebp_offset)
            break;
        if (!word_at(s, cfa - 4, &back) || !back)
            break;
        out[n++] = back;
        pc = back - 1;
        esp = cfa;
    }
    return n;
}

u32 chain_complete(struct row_cache *rows, const struct cfi_program *program,
                   const struct chain_sample *s, u32 *out)
{
    u32 n = 0;
    if (!s->depth)
        return 0;
    out[n++] = s->pc[0];
    if (program && s->stack_words >= 2)
        n += find_missing(rows, program, s, out + n);
    memcpy(out + n, s->pc + 1, (s->depth - 1) * sizeof(*out));
    return n + s->depth - 1;
}
