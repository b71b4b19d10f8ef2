// A balanced (AVL) tree of intrusive nodes, in the order defined by the owner,
// which compares, descends and knows each node's neighbours. The tree stays at
// most 1.44 * log2(n) nodes high. Any context; the owner locks.
#pragma once

#include "lib/assert.h"
#include "lib/types.h"

enum tree_side { TREE_LEFT, TREE_RIGHT };

struct tree_node {
    struct tree_node *parent, *child[2];
    u32 height; // nodes on the longest path down, including this one
};

struct tree {
    struct tree_node *root;
    // Optional: recomputes the owner's data in `n` about its subtree, from n
    // and its children. True: it has changed.
    bool (*summarize)(struct tree_node *n);
};

// Inserts `n` between two neighbours; NULL: there is none on that side.
void tree_insert(struct tree *t, struct tree_node *n, struct tree_node *before,
                 struct tree_node *after);
void tree_remove(struct tree *t, struct tree_node *n);
// Must be called when the data in `n` that `summarize` reads has changed.
void tree_changed(struct tree *t, struct tree_node *n);
