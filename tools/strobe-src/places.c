#include "places.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->image != y->image)
        return x->image < y->image ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

void places_init(struct places *p, const struct profile *profile)
{
    const struct chains *c = &profile->samples.chains;
    uint32_t kept = 0;

    *p = (struct places){ .profile = profile,
                          .list = calloc(c->count, sizeof(*p->list)) };
    if (!p->list)
        fail(1, "not enough memory for the export");
    for (uint32_t n = 1; n < c->count; n++)
        p->list[n - 1] = c->nodes[n].place;
    qsort(p->list, c->count - 1, sizeof(*p->list), compare);
    for (uint32_t i = 0; i + 1 < c->count; i++) {
        if (kept == 0 || compare(&p->list[kept - 1], &p->list[i]) != 0)
            p->list[kept++] = p->list[i];
    }
    p->count = kept;
}

void places_free(struct places *p)
{
    free(p->list);
}

uint32_t places_number(const struct places *p, uint32_t node)
{
    const struct place *place =
        bsearch(&p->profile->samples.chains.nodes[node].place, p->list,
                p->count, sizeof(*p->list), compare);
    return (uint32_t)(place - p->list) + 1;
}
