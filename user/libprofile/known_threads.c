#include "known_threads.h"

#include <stdlib.h>

#define ROOM_FIRST 64u

// Returns the thread's entry, or the free entry where it would be inserted.
static struct known_thread *find(struct known_threads *k, uint32_t thread)
{
    uint32_t i = thread * 0x9e3779b9u; // Fibonacci hashing
    for (;; i++) {
        struct known_thread *t = &k->list[i & (k->room - 1)];
        if (t->program == 0 || t->thread == thread)
            return t;
    }
}

// Keeps the table at most half full. Returns -1 when out of memory.
static int grow(struct known_threads *k)
{
    struct known_threads old = *k;
    if (old.count * 2 < old.room)
        return 0;
    uint32_t room = old.room == 0 ? ROOM_FIRST : old.room * 2;
    struct known_thread *list = calloc(room, sizeof(*list));
    if (!list)
        return -1;
    k->list = list;
    k->room = room;
    for (uint32_t i = 0; i < old.room; i++) {
        if (old.list[i].program != 0)
            *find(k, old.list[i].thread) = old.list[i];
    }
    free(old.list);
    return 0;
}

bool known_threads_add(struct known_threads *k, uint32_t thread,
                       uint32_t program)
{
    if (grow(k) < 0)
        return false;
    struct known_thread *t = find(k, thread);
    if (t->program == program)
        return false;
    k->count += t->program == 0;
    *t = (struct known_thread){ thread, program };
    return true;
}

void known_threads_free(struct known_threads *k)
{
    free(k->list);
    *k = (struct known_threads){ 0 };
}
