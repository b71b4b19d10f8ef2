#include "user_chain.h"

static const struct cfi_program *frames_of(struct images *images,
                                           uint32_t image)
{
    // Read now, while its file is what ran.
    const struct image *m = images_load(images, image);

    return m->frames.count > 0 ? &m->frames : NULL;
}

uint32_t user_chain(struct images *images, uint32_t image, uint32_t vdso,
                    const struct stream_sample *s, uint32_t *out)
{
    struct chain_sample c = {
        .pc = s->user,
        .depth = s->user_depth,
        .stack = s->stack,
        .stack_words = s->stack_words,
        .gap = s->flags & SPROFILE_F_USER_GAP,
    };
    struct chain_code code = { .program = frames_of(images, image) };

    if (vdso != 0) {
        code.vdso = frames_of(images, IMAGE_VDSO);
        code.vdso_base = vdso;
        code.vdso_bytes = VDSO_BYTES;
    }
    struct row_cache *rows = s->stack_words > 0 ? images_rows(images) : NULL;
    return chain_complete(rows, &code, &c, out);
}
