#include "user_chain.h"

uint32_t user_chain(struct images *images, uint32_t image,
                    const struct stream_sample *s, uint32_t *out)
{
    struct chain_sample c = {
        .pc = s->user,
        .depth = s->user_depth,
        .stack = s->stack,
        .stack_words = s->stack_words,
        .gap = s->flags & SPROFILE_F_USER_GAP,
    };
    const struct image *m = images_load(images, image);
    return chain_complete(m->frames.count > 0 ? &m->frames : NULL, &c, out);
}
