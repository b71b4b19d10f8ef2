#include "numbering.h"

#include "user/libstrobe/strobe.h"

#include <stdlib.h>

static uint32_t *numbers(uint32_t count)
{
    uint32_t *list = calloc(count + 1, sizeof(*list));

    if (!list)
        fail(1, "not enough memory for the export");
    return list;
}

void numbering_init(struct numbering *n, uint32_t bound)
{
    n->of = numbers(bound);
    n->keys = numbers(bound);
    n->count = 0;
}

void numbering_free(struct numbering *n)
{
    free(n->of);
    free(n->keys);
    *n = (struct numbering){ 0 };
}

void numbering_clear(struct numbering *n)
{
    while (n->count > 0)
        n->of[n->keys[--n->count]] = 0;
}

bool numbering_add(struct numbering *n, uint32_t key)
{
    if (n->of[key] != 0)
        return false;
    n->keys[n->count++] = key;
    n->of[key] = n->count;
    return true;
}
