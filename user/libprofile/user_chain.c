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
    // Read now, while its file is what ran.
    const struct image *m = images_load(images, image);
    struct row_cache *rows = s->stack_words > 0 ? images_rows(images) : NULL;
    bool framed = rows != NULL && m->frames.count > 0;
    return chain_complete(rows, framed ? &m->frames : NULL, &c, out);
}
