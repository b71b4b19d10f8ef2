// The blocks, and their executions by path (oracle.h).
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_HASH (1u << 18)
static struct block *blocks[BLOCK_HASH];
struct block **all_blocks;
u32 block_count;
static u32 block_room;

struct tallies tallies;

// A hash table of the tallies that are not in their node's list, with a part of
// their keys.
struct slot {
    u64 key;
    struct tally *tally;
};
static struct slot *slots;
static u64 slot_room, slots_used;

static u64 key_of(const struct node *n, const struct block *b)
{
    return (u64)n->id << 32 | b->id;
}

// Returns the slot of this key and tally, or a free one.
static struct slot *find(u64 key, const struct node *n, const struct block *b)
{
    u64 h = key * 0x9e3779b97f4a7c15ull;
    u64 i = (h ^ h >> 29) & (slot_room - 1);
    for (; slots[i].tally; i = (i + 1) & (slot_room - 1)) {
        const struct tally *t = slots[i].tally;
        if (slots[i].key == key && t->node == n && t->block == b)
            break;
    }
    return &slots[i];
}

static void grow(void)
{
    struct slot *old = slots;
    u64 room = slot_room;
    slot_room = room ? 2 * room : 1 << 16;
    slots = enough(calloc(slot_room, sizeof(*slots)));
    for (u64 i = 0; i < room; i++) {
        const struct tally *t = old[i].tally;
        if (t)
            *find(old[i].key, t->node, t->block) = old[i];
    }
    free(old);
}

static struct tally *tally_new(struct node *n, struct block *b)
{
    u64 chunk = tallies.count / TALLY_CHUNK;
    if (tallies.count % TALLY_CHUNK == 0) {
        if (chunk == tallies.chunk_room) {
            tallies.chunk_room = chunk ? 2 * chunk : 64;
            tallies.chunks = enough(realloc(
                tallies.chunks, tallies.chunk_room * sizeof(struct tally *)));
        }
        tallies.chunks[chunk] =
            enough(calloc(TALLY_CHUNK, sizeof(struct tally)));
    }
    struct tally *t = tally_at(&tallies, tallies.count++);
    t->node = n;
    t->block = b;
    return t;
}

static struct tally *tally_of_many(struct node *n, struct block *b)
{
    if (slots_used * 2 >= slot_room)
        grow();
    u64 key = key_of(n, b);
    struct slot *s = find(key, n, b);
    if (!s->tally) {
        *s = (struct slot){ key, tally_new(n, b) };
        slots_used++;
    }
    return s->tally;
}

struct tally *tally_of(struct node *n, struct block *b)
{
    for (struct tally *t = n->tallies; t; t = t->next) {
        if (t->block == b)
            return t;
    }
    if (n->tally_count == FEW)
        return tally_of_many(n, b);
    struct tally *t = tally_new(n, b);
    t->next = n->tallies;
    n->tallies = t;
    n->tally_count++;
    return t;
}

u64 *tally_cut(struct tally *t, u32 insns)
{
    struct cut **p = &t->cuts;
    while (*p && (*p)->insns != insns)
        p = &(*p)->next;
    if (!*p) {
        *p = enough(calloc(1, sizeof(**p)));
        (*p)->insns = insns;
    }
    return &(*p)->count;
}

static void add_cuts(struct tally *to, struct cut *cuts)
{
    while (cuts) {
        struct cut *c = cuts;
        cuts = c->next;
        *tally_cut(to, c->insns) += c->count;
        free(c);
    }
}

void tallies_fold(void)
{
    struct tallies old = tallies;
    tallies = (struct tallies){ 0 };
    free(slots);
    slots = NULL;
    slot_room = slots_used = 0;
    for (u32 i = 0; i < node_count; i++) {
        all_nodes[i]->tallies = NULL;
        all_nodes[i]->tally_count = 0;
    }
    for (u64 i = 0; i < old.count; i++) {
        const struct tally *t = tally_at(&old, i);
        struct tally *to =
            tally_of(t->node->into ? t->node->into : t->node, t->block);
        to->count += t->count;
        add_cuts(to, t->cuts);
        if (i % TALLY_CHUNK == TALLY_CHUNK - 1 || i == old.count - 1)
            free(old.chunks[i / TALLY_CHUNK]);
    }
    free(old.chunks);
    for (u32 i = 0; i < block_count; i++)
        all_blocks[i]->node = NULL;
}

struct block *block_of(u32 at, const u8 *bytes, u32 size, u32 insns,
                       bool *is_new)
{
    u32 h = at * 0x9e3779b1u ^ size * 0x85ebca6bu;
    for (u32 i = 0; i < size; i++)
        h = h * 31 + bytes[i];
    h = (h ^ h >> 15) & (BLOCK_HASH - 1);
    for (struct block *b = blocks[h]; b; b = b->next) {
        if (b->at == at && b->size == size && b->insns == insns &&
            !memcmp(b->bytes, bytes, size)) {
            *is_new = false;
            return b;
        }
    }
    struct block *b = enough(calloc(1, sizeof(*b) + size));
    b->id = block_count;
    b->at = at;
    b->size = size;
    b->insns = insns;
    b->entry = -1;
    memcpy(b->bytes, bytes, size);
    b->next = blocks[h];
    blocks[h] = b;
    if (block_count == block_room) {
        block_room = block_room ? 2 * block_room : 1024;
        all_blocks =
            enough(realloc(all_blocks, block_room * sizeof(*all_blocks)));
    }
    all_blocks[block_count++] = b;
    *is_new = true;
    return b;
}
