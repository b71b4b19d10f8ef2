#include "names.h"
#include "enough.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 256u

// FNV-1a (G. Fowler, L. Noll, P. Vo).
static uint32_t *bucket_of(const struct names *n, const char *text)
{
    uint32_t h = 2166136261u;

    while (*text != '\0')
        h = (h ^ (uint8_t)*text++) * 16777619u;
    return &n->buckets[h & (n->bucket_count - 1)];
}

static void grow(struct names *n)
{
    n->room = n->room == 0 ? ROOM_FIRST : n->room * 2;
    n->list = enough(realloc(n->list, n->room * sizeof(*n->list)));
    free(n->buckets);
    n->bucket_count = n->room;
    n->buckets = enough(calloc(n->bucket_count, sizeof(*n->buckets)));
    for (uint32_t i = 0; i < n->count; i++) {
        uint32_t *bucket = bucket_of(n, n->list[i].text);
        n->list[i].next = *bucket;
        *bucket = i + 1;
    }
}

uint32_t names_add(struct names *n, const char *text)
{
    if (n->count == n->room)
        grow(n);
    uint32_t *bucket = bucket_of(n, text);
    for (uint32_t i = *bucket; i != 0; i = n->list[i - 1].next) {
        if (strcmp(n->list[i - 1].text, text) == 0)
            return i - 1;
    }
    n->list[n->count] = (struct name){ enough(strdup(text)), *bucket };
    *bucket = ++n->count;
    return n->count - 1;
}

const char *names_keep(struct names *n, const char *text)
{
    uint32_t number = names_add(n, text);

    return n->list[number].text;
}

void names_free(struct names *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        free(n->list[i].text);
    free(n->list);
    free(n->buckets);
    *n = (struct names){ 0 };
}
