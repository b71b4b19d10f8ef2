#include "programs.h"

#include <stdbool.h>
#include <stdlib.h>

#define NONE UINT32_MAX

void programs_init(struct programs *p)
{
    *p = (struct programs){ 0 };
    for (uint32_t i = 0; i < PROGRAM_BUCKETS; i++)
        p->buckets[i] = NONE;
}

void programs_free(struct programs *p)
{
    free(p->list);
    programs_init(p);
}

void programs_add(struct programs *p, const struct program *program)
{
    if (p->count == p->room) {
        uint32_t room = p->room * 2 + 64;
        void *list = realloc(p->list, room * sizeof(*p->list));
        if (!list) {
            p->forgotten++;
            return;
        }
        p->list = list;
        p->room = room;
    }
    uint32_t *bucket = &p->buckets[program->task % PROGRAM_BUCKETS];
    p->list[p->count] = *program;
    p->list[p->count].next = *bucket;
    *bucket = p->count++;
}

const struct program *programs_find(const struct programs *p, uint32_t task,
                                    uint64_t time)
{
    const struct program *first = NULL;
    uint32_t i = p->buckets[task % PROGRAM_BUCKETS];
    for (; i != NONE; i = p->list[i].next) {
        if (p->list[i].task != task)
            continue;
        if (p->list[i].time <= time)
            return &p->list[i];
        first = &p->list[i];
    }
    return first;
}

uint32_t programs_index(const struct programs *p, const struct program *found)
{
    return found != NULL ? (uint32_t)(found - p->list) : PROGRAM_NONE;
}

const char *programs_name(const struct programs *p, uint32_t index)
{
    bool known = index != PROGRAM_NONE && p->list[index].name[0] != '\0';

    return known ? p->list[index].name : "?";
}
