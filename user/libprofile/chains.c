#include "chains.h"

#include "images.h"

#include <stdlib.h>

#define ROOM_FIRST 1024u

static uint32_t bucket_of(const struct chains *c, uint32_t parent,
                          struct place p)
{
    // Fibonacci hashing (D. Knuth, The Art of Computer Programming, vol. 3,
    // 6.4) of the three words in turn.
    uint32_t h = parent * 0x9e3779b9u;
    h = (h ^ h >> 15 ^ p.image) * 0x85ebca6bu;
    h = (h ^ h >> 13 ^ p.address) * 0x9e3779b9u;
    return (h ^ h >> 16) & (c->room - 1);
}

static void enter(struct chains *c, uint32_t node)
{
    struct chain_node *n = &c->nodes[node];
    uint32_t *bucket = &c->buckets[bucket_of(c, n->parent, n->place)];
    n->next = *bucket;
    *bucket = node;
}

// Doubles the capacity. Returns -1, with the tables unchanged, at the limit or
// when out of memory.
static int grow(struct chains *c)
{
    uint32_t room = c->room == 0 ? ROOM_FIRST : c->room * 2;
    if (c->room >= c->max)
        return -1;
    uint32_t *buckets = malloc(room * sizeof(*buckets));
    if (!buckets)
        return -1;
    void *nodes = realloc(c->nodes, room * sizeof(*c->nodes));
    if (!nodes) {
        free(buckets);
        return -1;
    }
    free(c->buckets);
    c->nodes = nodes;
    c->buckets = buckets;
    c->room = room;
    for (uint32_t i = 0; i < room; i++)
        buckets[i] = CHAIN_NONE;
    for (uint32_t i = 1; i < c->count; i++)
        enter(c, i);
    return 0;
}

int chains_init(struct chains *c, uint32_t max)
{
    *c = (struct chains){ .max = max };
    if (grow(c) < 0)
        return -1;
    c->nodes[0] = (struct chain_node){ .place = { IMAGE_NONE, 0 },
                                       .parent = CHAIN_ROOT,
                                       .next = CHAIN_NONE };
    c->count = 1;
    return 0;
}

void chains_free(struct chains *c)
{
    free(c->nodes);
    free(c->buckets);
    *c = (struct chains){ 0 };
}

void chains_clear(struct chains *c)
{
    c->count = 1;
    c->cut = 0;
    for (uint32_t i = 0; i < c->room; i++)
        c->buckets[i] = CHAIN_NONE;
}

uint32_t chains_find(const struct chains *c, uint32_t parent,
                     struct place place)
{
    uint32_t node = c->buckets[bucket_of(c, parent, place)];
    for (; node != CHAIN_NONE; node = c->nodes[node].next) {
        const struct chain_node *n = &c->nodes[node];
        if (n->parent == parent && n->place.address == place.address &&
            n->place.image == place.image)
            break;
    }
    return node;
}

uint32_t chains_add(struct chains *c, uint32_t parent, struct place place)
{
    uint32_t node = chains_find(c, parent, place);
    if (node != CHAIN_NONE)
        return node;
    if (c->count == c->room && grow(c) < 0) {
        c->cut++;
        return parent;
    }
    node = c->count++;
    uint32_t mark =
        place.image == IMAGE_CUT ? 1u << (place.address + 1) % 32 : 0;
    c->nodes[node] = (struct chain_node){
        .place = place,
        .parent = parent,
        .marks = c->nodes[parent].marks | mark,
        .next = CHAIN_NONE,
    };
    enter(c, node);
    return node;
}
