#include "user_chain.h"

#include <string.h>

static const struct cfi_program *frames_of(const struct image *m)
{
    return m->frames.count > 0 ? &m->frames : NULL;
}

uint32_t user_chain(struct images *images, uint32_t image, uint32_t vdso,
                    const struct stream_sample *s, uint32_t *out)
{
    // Read now, while its file is what ran.
    const struct image *m = images_load(images, image);

    if (s->stack_words == 0) {
        memcpy(out, s->user, s->user_depth * sizeof(*out));
        return s->user_depth;
    }
    struct chain_sample c = {
        .pc = s->user,
        .depth = s->user_depth,
        .stack = s->stack,
        .stack_words = s->stack_words,
        .gap = s->flags & SPROFILE_F_USER_GAP,
    };
    struct chain_code code = { .program = frames_of(m) };

    if (vdso != 0) {
        code.vdso = frames_of(images_load(images, IMAGE_VDSO));
        code.vdso_base = vdso;
        code.vdso_bytes = VDSO_BYTES;
    }
    return chain_complete(images_rows(images), &code, &c, out);
}
