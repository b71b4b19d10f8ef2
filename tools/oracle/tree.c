// The tree of paths (oracle.h).
#include "oracle.h"

#include <stdlib.h>

#define NODE_HASH (1u << 20)
static struct node *nodes[NODE_HASH];
struct node **all_nodes;
u32 node_count;
static u32 node_room;

static struct node *node_new(enum node_kind kind, struct node *parent)
{
    struct node *n = enough(calloc(1, sizeof(*n)));
    if (node_count == node_room) {
        node_room = node_room ? 2 * node_room : 1024;
        all_nodes =
            enough(realloc(all_nodes, node_room * sizeof(struct node *)));
    }
    n->id = node_count;
    all_nodes[node_count++] = n;
    n->kind = kind;
    n->parent = parent;
    return n;
}

struct node *root(const char *name, u32 number)
{
    struct node *n = node_new(NODE_ROOT, NULL);
    n->name = name;
    n->number = number;
    return n;
}

struct node *child(struct node *parent, enum node_kind kind, u32 site,
                   u32 vector)
{
    u32 h =
        (parent->id * 0x9e3779b1u ^ site * 0x85ebca6bu ^ vector << 3 ^ kind);
    h = (h ^ h >> 15) & (NODE_HASH - 1);
    for (struct node *n = nodes[h]; n; n = n->next) {
        if (n->parent == parent && n->site == site && n->kind == kind &&
            n->vector == vector)
            return n;
    }
    struct node *n = node_new(kind, parent);
    n->site = site;
    n->vector = vector;
    n->next = nodes[h];
    nodes[h] = n;
    return n;
}
