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

static const struct cfi_row *find_row(struct row_cache *rows,
                                      const struct chain_code *code, u32 pc)
{
    const struct cfi_program *p = code->program;
    if (pc - code->vdso_base < code->vdso_bytes) {
        p = code->vdso;
        pc -= code->vdso_base;
    }
    return p ? row_cache_find(rows, p, pc) : NULL;
}

// The callers of the innermost function that the frames do not tell, into
// `out`.
static u32 find_missing(struct row_cache *rows, const struct chain_code *code,
                        const struct chain_sample *s, u32 *out)
{
    u32 esp = s->stack[0], frame = s->stack[1], pc = s->pc[0], n = 0;
    const struct cfi_row *row;
    while (n < CHAIN_MORE && (row = find_row(rows, code, pc)) && !row->by_ebp) {
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

u32 chain_complete(struct row_cache *rows, const struct chain_code *code,
                   const struct chain_sample *s, u32 *out)
{
    u32 n = 0;
    if (!s->depth)
        return 0;
    out[n++] = s->pc[0];
    if (rows && s->stack_words >= 2)
        n += find_missing(rows, code, s, out + n);
    memcpy(out + n, s->pc + 1, (s->depth - 1) * sizeof(*out));
    return n + s->depth - 1;
}
