#include "by_thread.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const struct timed_sample *x = a, *y = b;
    bool idle = sample_is_idle(x);

    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    if (idle != sample_is_idle(y))
        return idle ? 1 : -1;
    if (idle && x->cpu != y->cpu)
        return x->cpu < y->cpu ? -1 : 1;
    if (!idle && x->task != y->task)
        return x->task < y->task ? -1 : 1;
    if (!idle && x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->time < y->time ? -1 : x->time > y->time;
}

bool same_thread(const struct timed_sample *x, const struct timed_sample *y)
{
    if (x->event != y->event)
        return false;
    if (sample_is_idle(x) || sample_is_idle(y))
        return sample_is_idle(x) && sample_is_idle(y) && x->cpu == y->cpu;
    return x->task == y->task && x->thread == y->thread;
}

struct timed_sample *samples_by_thread(const struct export *e, size_t *count)
{
    const struct profile *p = e->profile;
    struct timed_sample *list = calloc(p->count + 1, sizeof(*list));

    if (!list)
        fail(1, "not enough memory for the export");
    *count = 0;
    for (size_t i = 0; i < p->count; i++) {
        const struct timed_sample *s = &p->list[i];
        struct sample_count c = {
            .task = s->task, .thread = s->thread, .cpu = s->cpu, .mode = s->mode
        };
        if (view_passes(&c, e->filter))
            list[(*count)++] = *s;
    }
    qsort(list, *count, sizeof(*list), compare);
    return list;
}
