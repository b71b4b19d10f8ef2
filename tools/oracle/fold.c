// Limits the number of paths (oracle.h). The counts of a path that is folded
// become its caller's: all sums stay exact, and only detail is lost.
#include "oracle.h"

#include <stdlib.h>

#define TALLIES_PER_PATH 8 // the limit; 5 or 6 are usual

u32 fold_epoch;
u64 folded;

// The next fold is due above these. They may exceed the limit: each thread has
// a root, which is not folded.
static u64 paths_due, tallies_due;

static u64 max(u64 a, u64 b)
{
    return a > b ? a : b;
}

bool fold_is_due(void)
{
    return node_count > max(paths_due, options.paths) ||
           tallies.count >
               max(tallies_due, (u64)options.paths * TALLIES_PER_PATH);
}

// A path was used if one below it was.
static void use_parents(void)
{
    for (u32 i = node_count; i-- > 0;) {
        struct node *n = all_nodes[i];
        if (n->parent && n->used > n->parent->used)
            n->parent->used = n->used;
    }
}

// Returns a depth up to which there are at most `most` used paths below roots.
static u32 depth_for(u64 most)
{
    enum { DEPTHS = 4096 };
    static u64 at_depth[DEPTHS];
    u64 sum = 0;
    u32 depth = 0;
    for (u32 i = 0; i < DEPTHS; i++)
        at_depth[i] = 0;
    for (u32 i = 0; i < node_count; i++) {
        const struct node *n = all_nodes[i];
        if (n->used == fold_epoch && n->depth)
            at_depth[n->depth < DEPTHS ? n->depth : DEPTHS - 1]++;
    }
    while (depth + 1 < DEPTHS && sum + at_depth[depth + 1] <= most)
        sum += at_depth[++depth];
    return depth + 1 < DEPTHS ? depth : UINT32_MAX;
}

// Keeps at most `most` paths below roots.
static void fold_to(u64 most)
{
    use_parents();
    u32 depth = depth_for(most);
    for (u32 i = 0; i < node_count; i++) {
        struct node *n = all_nodes[i];
        if (!n->parent || (n->used == fold_epoch && n->depth <= depth))
            continue;
        n->into = n->parent->into ? n->parent->into : n->parent;
        folded++;
    }
    for (u32 i = 0; i < CPU_MAX; i++) {
        struct cpu *c = &cpus[i];
        c->tally_node = c->tally ? c->tally->node : NULL;
    }
    threads_fold();
    tallies_fold();
    for (u32 i = 0; i < CPU_MAX; i++) {
        struct cpu *c = &cpus[i];
        struct node *n = c->tally_node;
        if (n)
            c->tally = tally_of(n->into ? n->into : n, c->block);
    }
    nodes_remove();
}

void fold(void)
{
    u64 most = options.paths / 2;
    do {
        fold_to(most);
        most /= 4;
    } while (most && tallies.count > (u64)options.paths / 2 * TALLIES_PER_PATH);
    fold_epoch++;
    paths_due = 2 * node_count;
    tallies_due = 2 * tallies.count;
}
