// The tree of paths (oracle.h).
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

#define NODE_HASH (1u << 20)
#define CHUNK 1024
static struct node *nodes[NODE_HASH];
static struct node *free_nodes; // linked by `next`
struct node **all_nodes;
u32 node_count;
static u32 node_room, last_id;

static struct node *node_alloc(void)
{
    if (!free_nodes) {
        struct node *chunk = enough(calloc(CHUNK, sizeof(*chunk)));
        for (u32 i = CHUNK; i-- > 0;) {
            chunk[i].next = free_nodes;
            free_nodes = &chunk[i];
        }
    }
    struct node *n = free_nodes;
    free_nodes = n->next;
    *n = (struct node){ .id = last_id++, .used = fold_epoch };
    return n;
}

static struct node *node_new(enum node_kind kind, struct node *parent)
{
    struct node *n = node_alloc();
    if (node_count == node_room) {
        node_room = node_room ? 2 * node_room : 1024;
        all_nodes =
            enough(realloc(all_nodes, node_room * sizeof(struct node *)));
    }
    all_nodes[node_count++] = n;
    n->kind = kind;
    n->parent = parent;
    n->depth = parent ? parent->depth + 1 : 0;
    return n;
}

struct node *root(const char *name, u32 number)
{
    struct node *n = node_new(NODE_ROOT, NULL);
    n->name = name;
    n->number = number;
    return n;
}

static struct node **bucket(const struct node *parent, enum node_kind kind,
                            u32 site, u32 vector)
{
    u32 h =
        (parent->id * 0x9e3779b1u ^ site * 0x85ebca6bu ^ vector << 3 ^ kind);
    return &nodes[(h ^ h >> 15) & (NODE_HASH - 1)];
}

static void link_child(struct node *n)
{
    struct node *parent = n->parent;
    struct node **head = &parent->children;
    if (parent->child_count == FEW)
        head = bucket(parent, n->kind, n->site, n->vector);
    else
        parent->child_count++;
    n->next = *head;
    *head = n;
}

static struct node *find_in(struct node *list, const struct node *parent,
                            enum node_kind kind, u32 site, u32 vector)
{
    while (list && (list->site != site || list->parent != parent ||
                    list->kind != kind || list->vector != vector))
        list = list->next;
    return list;
}

struct node *child(struct node *parent, enum node_kind kind, u32 site,
                   u32 vector)
{
    struct node *n = find_in(parent->children, parent, kind, site, vector);
    if (!n && parent->child_count == FEW)
        n = find_in(*bucket(parent, kind, site, vector), parent, kind, site,
                    vector);
    if (n) {
        n->used = fold_epoch;
        return n;
    }
    n = node_new(kind, parent);
    n->site = site;
    n->vector = vector;
    link_child(n);
    return n;
}

struct node *root_of(struct node *n)
{
    while (n->parent)
        n = n->parent;
    return n;
}

#define IDLE_DEPTH 400 // of paths that are copied

static struct node *copy_below_idle(struct node *n)
{
    if (n->parent)
        return child(copy_below_idle(n->parent), n->kind, n->site, n->vector);
    if (!n->idle) {
        n->idle = root("idle", n->number);
        n->idle->idle = n;
    }
    return n->idle;
}

struct node *idle_after(struct node *n)
{
    while (n->depth > IDLE_DEPTH)
        n = n->parent;
    return copy_below_idle(n);
}

void nodes_remove(void)
{
    u32 kept = 0;
    memset(nodes, 0, sizeof(nodes));
    for (u32 i = 0; i < node_count; i++) {
        struct node *n = all_nodes[i];
        if (n->into) {
            n->next = free_nodes;
            free_nodes = n;
            continue;
        }
        all_nodes[kept++] = n;
        n->children = NULL;
        n->child_count = 0;
        if (n->parent)
            link_child(n);
    }
    node_count = kept;
}
