// The tree of calls. Children are a linked list, since a node has few.
#include "views.h"

#include <stdlib.h>

static uint32_t child_of(struct tree *t, uint32_t parent, uint32_t row)
{
    uint32_t n = t->nodes[parent].first;
    for (; n != 0; n = t->nodes[n].next) {
        if (t->nodes[n].row == row)
            return n;
    }
    if (t->count == t->room) {
        uint32_t room = t->room * 2 + 256;
        void *nodes = realloc(t->nodes, room * sizeof(*t->nodes));
        if (!nodes)
            return 0;
        t->nodes = nodes;
        t->room = room;
    }
    n = t->count++;
    t->nodes[n] = (struct tree_node){ .row = row,
                                      .parent = parent,
                                      .next = t->nodes[parent].first };
    t->nodes[parent].first = n;
    return n;
}

static int add(struct tree *t, const struct view *v, const struct samples *s,
               const struct sample_count *c, bool inverted, uint32_t *path)
{
    uint32_t depth = 0, node = 0, own = 0;
    for (uint32_t n = c->chain; n != CHAIN_ROOT; n = s->chains.nodes[n].parent)
        path[depth++] = v->row_of[n];
    t->nodes[0].total += c->samples;
    t->nodes[0].total_period += c->period;
    for (uint32_t i = 0; i < depth; i++) {
        node = child_of(t, node, path[inverted ? i : depth - 1 - i]);
        if (node == 0)
            return -1;
        t->nodes[node].total += c->samples;
        t->nodes[node].total_period += c->period;
        if (!inverted || i == 0)
            own = node;
    }
    t->nodes[own].self += c->samples;
    t->nodes[own].self_period += c->period;
    return 0;
}

static bool before(const struct tree *t, uint32_t a, uint32_t b)
{
    const struct tree_node *x = &t->nodes[a], *y = &t->nodes[b];
    if (x->total_period != y->total_period)
        return x->total_period > y->total_period;
    return x->total != y->total ? x->total > y->total : x->row < y->row;
}

// Merge sort of a node's children by their time (total_period).
static uint32_t sorted(struct tree *t, uint32_t list)
{
    if (list == 0 || t->nodes[list].next == 0)
        return list;
    uint32_t slow = list, fast = t->nodes[list].next;
    while (fast != 0 && t->nodes[fast].next != 0) {
        slow = t->nodes[slow].next;
        fast = t->nodes[t->nodes[fast].next].next;
    }
    uint32_t other = t->nodes[slow].next, head = 0;
    t->nodes[slow].next = 0;
    uint32_t a = sorted(t, list), b = sorted(t, other), *end = &head;
    while (a != 0 && b != 0) {
        uint32_t *first = before(t, a, b) ? &a : &b;
        *end = *first;
        end = &t->nodes[*first].next;
        *first = *end;
    }
    *end = a != 0 ? a : b;
    return head;
}

static uint32_t deepest(const struct chains *c)
{
    uint32_t max = 0;
    for (uint32_t i = 1; i < c->count; i++) {
        uint32_t depth = 0;
        for (uint32_t n = i; n != CHAIN_ROOT; n = c->nodes[n].parent)
            depth++;
        max = depth > max ? depth : max;
    }
    return max;
}

int tree_make(struct tree *t, const struct view *v, const struct samples *s,
              const struct view_filter *filter, bool inverted)
{
    uint32_t *path = malloc((deepest(&s->chains) + 1) * sizeof(*path));
    *t = (struct tree){ .nodes = calloc(256, sizeof(*t->nodes)),
                        .count = 1,
                        .room = 256 };
    int err = path && t->nodes ? 0 : -1;
    if (err == 0)
        t->nodes[0].row = UINT32_MAX;
    for (uint32_t i = 0; err == 0 && i < s->count; i++) {
        if (view_passes(&s->counts[i], filter))
            err = add(t, v, s, &s->counts[i], inverted, path);
    }
    for (uint32_t i = 0; err == 0 && i < t->count; i++)
        t->nodes[i].first = sorted(t, t->nodes[i].first);
    free(path);
    if (err < 0)
        tree_free(t);
    return err;
}

void tree_free(struct tree *t)
{
    free(t->nodes);
    *t = (struct tree){ 0 };
}
