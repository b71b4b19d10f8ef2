// The programs of flat counts (oracle.c): there is one root for all of them.
// Each file that explains blocks gets a root of its own, at each address at
// which it was executed.
#include "enough.h"
#include "oracle_reading.h"

#include <stdlib.h>
#include <string.h>

// Fewer blocks at any page of a file agree with it by chance.
#define BLOCKS_LEAST 8

// Blocks that a file has, if it was executed at this bias.
struct claim {
    size_t file;
    uint32_t bias, first, count; // in `blocks`
};

struct claims {
    struct reading *r;
    const uint32_t *root_of; // of each block: a path, or one of these
    struct claim *list;
    uint32_t count, room;
    uint32_t *blocks, block_count, block_room;
};

#define NO_PROGRAM (NONE - 1) // it is of the kernel, the firmware, the vDSO

struct pair {
    uint32_t bias, block;
};

static int by_bias(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->bias != y->bias)
        return x->bias < y->bias ? -1 : 1;
    return x->block < y->block ? -1 : x->block > y->block;
}

static void claim(struct claims *c, size_t file, const struct pair *pairs,
                  uint32_t count)
{
    if (c->count == c->room)
        c->list = oracle_grown(c->r, c->list, &c->room, sizeof(*c->list));
    c->list[c->count++] =
        (struct claim){ file, pairs->bias, c->block_count, count };
    for (uint32_t i = 0; i < count; i++) {
        if (c->block_count == c->block_room)
            c->blocks = oracle_grown(c->r, c->blocks, &c->block_room,
                                     sizeof(*c->blocks));
        c->blocks[c->block_count++] = pairs[i].block;
    }
}

static void claim_matches(void *arg, size_t file, const struct matches *m)
{
    struct claims *c = arg;
    struct pair *pairs = enough(calloc(m->count + 1, sizeof(*pairs)));
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        if (c->root_of[m->block[i]] == NONE)
            pairs[count++] = (struct pair){ m->bias[i], m->block[i] };
    }
    if (count)
        qsort(pairs, count, sizeof(*pairs), by_bias);
    for (uint32_t i = 0, j; i < count; i = j) {
        for (j = i; j < count && pairs[j].bias == pairs[i].bias;)
            j++;
        if (pairs[i].bias == 0 || j - i >= BLOCKS_LEAST)
            claim(c, file, &pairs[i], j - i);
    }
    free(pairs);
}

static int most_first(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->file < y->file ? -1 : x->file > y->file;
}

static uint32_t add_root(struct reading *r)
{
    if (r->path_count == r->path_room)
        r->paths = oracle_grown(r, r->paths, &r->path_room, sizeof(*r->paths));
    uint32_t i = r->path_count++;
    r->paths[i] = (struct path){ .parent = NONE,
                                 .root = i,
                                 .kind = ROOT_PROGRAM,
                                 .number = i,
                                 .image = IMAGE_UNKNOWN,
                                 .program = PROGRAM_NONE };
    return i;
}

// Gives the claim those of its blocks that have no root yet.
static void settle(struct reading *r, const struct claims *all,
                   const struct claim *c, uint32_t *root_of)
{
    const uint32_t *blocks = &all->blocks[c->first];
    uint32_t fresh = 0, root;
    for (uint32_t i = 0; i < c->count; i++)
        fresh += root_of[blocks[i]] == NONE;
    if (!fresh) { // another build may have the same code
        oracle_name_twin(r, &r->paths[root_of[blocks[0]]], c->file, c->count);
        return;
    }
    if (c->bias && fresh < BLOCKS_LEAST)
        return;
    root = add_root(r);
    oracle_name_program(r, &r->paths[root], c->file, c->bias, c->count);
    for (uint32_t i = 0; i < c->count; i++) {
        if (root_of[blocks[i]] == NONE)
            root_of[blocks[i]] = root;
    }
}

void oracle_split_programs(struct reading *r)
{
    uint32_t *root_of = enough(malloc((r->block_count + 1) * sizeof(*root_of)));
    struct claims c = { .r = r, .root_of = root_of };
    for (uint32_t i = 0; i < r->block_count; i++)
        root_of[i] = NO_PROGRAM;
    for (uint32_t i = 0; i < r->run_count; i++) {
        uint32_t block = r->runs[i].block;
        if (r->paths[r->runs[i].path].kind == ROOT_PROGRAM &&
            !oracle_vdso_of(r, r->blocks[block].at))
            root_of[block] = NONE;
    }
    oracle_match_files(r, claim_matches, &c);
    if (c.count)
        qsort(c.list, c.count, sizeof(*c.list), most_first);
    for (uint32_t i = 0; i < c.count; i++)
        settle(r, &c, &c.list[i], root_of);
    for (uint32_t i = 0; i < r->run_count; i++) {
        struct run *run = &r->runs[i];
        if (root_of[run->block] < NO_PROGRAM)
            run->path = root_of[run->block];
    }
    free(root_of);
    free(c.list);
    free(c.blocks);
}
