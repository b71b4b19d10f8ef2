// The blocks, and their executions by path (oracle.h).
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_HASH (1u << 18)
static struct block *blocks[BLOCK_HASH];
struct block **all_blocks;
u32 block_count;
static u32 block_room;

struct tally **tallies;
u64 tally_room;
static u64 tally_count;

static u64 tally_hash(u32 node, u32 block)
{
    u64 h = ((u64)node << 32 | block) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

static void tally_insert(struct tally **table, u64 room, struct tally *t)
{
    u64 i = tally_hash(t->node, t->block) & (room - 1);
    while (table[i])
        i = (i + 1) & (room - 1);
    table[i] = t;
}

struct tally *tally_of(struct node *n, struct block *b)
{
    if (tally_count * 2 >= tally_room) {
        u64 room = tally_room ? 2 * tally_room : 1 << 16;
        struct tally **table = enough(calloc(room, sizeof(*table)));
        for (u64 i = 0; i < tally_room; i++) {
            if (tallies[i])
                tally_insert(table, room, tallies[i]);
        }
        free(tallies);
        tallies = table;
        tally_room = room;
    }
    u64 i = tally_hash(n->id, b->id) & (tally_room - 1);
    for (; tallies[i]; i = (i + 1) & (tally_room - 1)) {
        if (tallies[i]->node == n->id && tallies[i]->block == b->id)
            return tallies[i];
    }
    struct tally *t = enough(calloc(1, sizeof(*t)));
    t->node = n->id;
    t->block = b->id;
    tallies[i] = t;
    tally_count++;
    return t;
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
