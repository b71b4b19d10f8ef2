#include "task_times.h"

#include <stdlib.h>
#include <string.h>

void task_times_free(struct task_times *t)
{
    free(t->list);
    *t = (struct task_times){ 0 };
}

static bool grow(struct task_times *t)
{
    uint32_t room = t->room * 2 + 64;
    void *list = realloc(t->list, room * sizeof(*t->list));

    if (!list) {
        t->incomplete = true;
        return false;
    }
    t->list = list;
    t->room = room;
    return true;
}

// Finds the task's entry, or adds one. Returns NULL when out of memory.
static struct task_time *entry(struct task_times *t, uint8_t event,
                               uint32_t task)
{
    uint32_t *bucket = &t->buckets[task % TASK_TIME_BUCKETS];

    for (uint32_t i = *bucket; i > 0; i = t->list[i - 1].next) {
        struct task_time *e = &t->list[i - 1];
        if (e->task == task && e->event == event)
            return e;
    }
    if (t->count == t->room && !grow(t))
        return NULL;
    t->list[t->count] =
        (struct task_time){ .task = task, .event = event, .next = *bucket };
    *bucket = ++t->count;
    return &t->list[t->count - 1];
}

void task_times_take(struct task_times *t, const struct sprofile_times *r)
{
    struct task_time *e = entry(t, 0, r->task);

    if (!e)
        return;
    e->known = r->kind == SPROFILE_TIMES_END;
    if (e->known) {
        e->user += r->user - e->user_at;
        e->kernel += r->kernel - e->kernel_at;
    }
    e->user_at = r->user;
    e->kernel_at = r->kernel;
}

void task_times_set(struct task_times *t, uint8_t event, uint32_t task,
                    uint64_t user, uint64_t kernel)
{
    struct task_time *e = entry(t, event, task);

    if (!e)
        return;
    e->known = true;
    e->user = user;
    e->kernel = kernel;
}
