#include "user_chain.h"

#include <string.h>

static struct chain_code code_of(struct images *images, const struct image *m,
                                 const struct user_code *user)
{
    struct chain_code code = { .load_bias = user->load_bias,
                               .entry = m->entry + user->load_bias };

    if (m->frames.count > 0)
        code.program = &m->frames;
    if (user->vdso != 0) {
        code.vdso = &images_load(images, IMAGE_VDSO)->frames;
        code.vdso_base = user->vdso;
        code.vdso_bytes = VDSO_BYTES;
    }
    return code;
}

// Whether a chain of recorded calls, whose outermost address is `pc`, is whole:
// whether it ends in the function at which the program begins.
static bool is_outermost(struct images *images, const struct image *m,
                         const struct user_code *user, uint32_t pc)
{
    const struct symbol *s =
        images_symbol(images, user->image, pc - user->load_bias);

    return s && s == images_symbol(images, user->image, m->entry);
}

// Recorded calls: the outermost ones may be missing.
static uint32_t end_recorded(struct images *images, const struct image *m,
                             const struct user_code *user, uint32_t *out,
                             uint32_t depth)
{
    if (depth > 0 && depth < USER_CHAIN_MAX &&
        !is_outermost(images, m, user, out[depth - 1] - (depth > 1)))
        out[depth++] = CHAIN_BROKEN;
    return depth;
}

uint32_t user_chain(struct images *images, const struct user_code *user,
                    const struct stream_sample *s, uint32_t *out,
                    uint32_t *proven)
{
    // Load the image now, while the file at its path (or the held file) is
    // the file that ran.
    const struct image *m = images_load(images, user->image);
    uint32_t depth = s->user_depth;

    // Drop the outermost entry if it is neither a return address nor a mark:
    // when a program's first function has a frame, argc follows it where a
    // return address would be.
    if (depth > 1 && s->user[depth - 1] < CHAIN_MARKS)
        depth--;
    if (s->stack_words == 0) {
        *proven = depth;
        memcpy(out, s->user, depth * sizeof(*out));
        return s->flags & SPROFILE_F_USER_CALLS
                   ? end_recorded(images, m, user, out, depth)
                   : depth;
    }
    struct chain_sample c = {
        .pc = s->user,
        .depth = depth,
        .stack = s->stack,
        .stack_words = s->stack_words,
        .flags = s->flags,
        .signals = s->signals,
        .signal_count = s->signal_count,
    };
    struct chain_code code = code_of(images, m, user);
    return chain_complete(images_rows(images), &code, &c, out, proven);
}

// --- calls ------------------------------------------------------------------

#define CALL_BYTES_MAX 7u
#define CALL_RELATIVE 0xe8
#define CALL_RELATIVE_BYTES 5u
#define GROUP_5 0xff // /2 is a call through a register or memory
#define GROUP_5_CALL(modrm) (((modrm) >> 3 & 7) == 2)

// Whether a call instruction ends at `end` (SDM vol. 2, CALL).
static bool is_call(const uint8_t *end)
{
    static const uint32_t sizes[] = { 2, 3, 4, 6, 7 };

    if (end[-5] == CALL_RELATIVE)
        return true;
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const uint8_t *at = end - sizes[i];
        if (at[0] == GROUP_5 && GROUP_5_CALL(at[1]))
            return true;
    }
    return false;
}

#define PROLOGUE_WITHIN 32u // of a function's start, searched for a prologue

// For a function without call frame information: whether it sets up a frame at
// its beginning (push %ebp; mov %esp, %ebp, in either encoding).
static bool makes_frame(struct images *images, uint32_t image, uint32_t callee)
{
    const struct image *m = images_load(images, image);
    const struct symbol *s = images_symbol(images, image, callee);

    if (!s || s->start - m->code_address > m->code_size)
        return true; // unknown: assume it does
    uint32_t offset = s->start - m->code_address;
    for (uint32_t i = 0; i < PROLOGUE_WITHIN; i++, offset++) {
        if (offset + 3 > m->code_size || s->start + i >= s->end)
            break;
        const uint8_t *at = m->code + offset;
        if (at[0] == 0x55 && ((at[1] == 0x89 && at[2] == 0xe5) ||
                              (at[1] == 0x8b && at[2] == 0xec)))
            return true;
    }
    return false;
}

// Whether a call can have the function around `callee`, which may be in no file
// (JIT), as its target. A direct call to a known function leads to no other.
static bool leads_to(struct images *images, uint32_t image, uint32_t callee,
                     uint32_t back, const uint8_t *end)
{
    uint32_t distance;

    if (end[-5] != CALL_RELATIVE)
        return true;
    memcpy(&distance, end - sizeof(distance), sizeof(distance));
    uint32_t target = back + distance;
    const struct symbol *called = images_symbol(images, image, target);
    // A target within a function: that byte is no call's first.
    return !called || called->start != target ||
           called == images_symbol(images, image, callee);
}

enum user_call user_call(struct images *images, const struct user_code *user,
                         uint32_t callee, uint32_t back)
{
    const struct image *m = images_load(images, user->image);
    struct chain_code code = code_of(images, m, user);
    uint32_t offset = back - user->load_bias - m->code_address;

    if (m->code_size == 0)
        return CALL_POSSIBLE;
    if (offset < CALL_BYTES_MAX || offset > m->code_size)
        return CALL_UNKNOWN;
    if (!is_call(m->code + offset))
        return CALL_NONE;
    switch (chain_link(images_rows(images), &code, callee)) {
    case LINK_FRAMED:
        return CALL_POSSIBLE;
    case LINK_NONE:
        return CALL_FARTHER;
    default:
        callee -= user->load_bias;
        back -= user->load_bias;
        return makes_frame(images, user->image, callee) &&
                       leads_to(images, user->image, callee, back,
                                m->code + offset)
                   ? CALL_POSSIBLE
                   : CALL_FARTHER;
    }
}
