// A pairing heap, intrusive: insert and minimum O(1), remove O(log n)
// amortised. Not locked; the owner does that.
#pragma once

#include "lib/types.h"

struct heap_node {
    struct heap_node *child, *next, *prev; // prev: left sibling or parent
    u64 key;
    bool queued;
};
struct heap {
    struct heap_node *root;
};

void heap_insert(struct heap *h, struct heap_node *n, u64 key);
void heap_remove(struct heap *h, struct heap_node *n);
static inline struct heap_node *heap_min(const struct heap *h)
{
    return h->root;
}
