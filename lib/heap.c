// A pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986): a tree in heap
// order, each node with a list of children. Insertion melds two trees; removal
// melds the children of the removed node pairwise. No recursion: the depth of
// the kernel's stack does not depend on the number of nodes.
#include "lib/heap.h"

// Joins two trees (roots without siblings); the smaller key stays on top. Among
// equal keys `a` does.
static struct heap_node *meld(struct heap_node *a, struct heap_node *b)
{
    if (b->key < a->key) {
        struct heap_node *swap = a;
        a = b;
        b = swap;
    }
    b->prev = a;
    b->next = a->child;
    if (a->child != NULL)
        a->child->prev = b;
    a->child = b;
    return a;
}

// Joins a list of siblings into one tree: pairs from left to right, then the
// pairs from right to left. NULL for none.
static struct heap_node *meld_siblings(struct heap_node *first)
{
    struct heap_node *pairs = NULL; // linked by next, the rightmost first
    while (first != NULL) {
        struct heap_node *a = first, *b = a->next;
        first = b != NULL ? b->next : NULL;
        if (b != NULL)
            a = meld(a, b);
        a->next = pairs;
        pairs = a;
    }

    struct heap_node *root = NULL;
    while (pairs != NULL) {
        struct heap_node *next = pairs->next;
        root = root != NULL ? meld(pairs, root) : pairs;
        pairs = next;
    }
    if (root != NULL)
        root->next = root->prev = NULL;
    return root;
}

void heap_insert(struct heap *h, struct heap_node *n, u64 key)
{
    *n = (struct heap_node){ .key = key, .queued = true };
    h->root = h->root != NULL ? meld(h->root, n) : n;
}

void heap_remove(struct heap *h, struct heap_node *n)
{
    struct heap_node *rest = meld_siblings(n->child);

    if (n == h->root) {
        h->root = rest;
    } else {
        if (n->prev->child == n)
            n->prev->child = n->next;
        else
            n->prev->next = n->next;
        if (n->next != NULL)
            n->next->prev = n->prev;
        if (rest != NULL)
            h->root = meld(h->root, rest);
    }
    *n = (struct heap_node){ .key = n->key };
}
