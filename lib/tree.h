// A balanced (AVL) tree of intrusive nodes, in the order in which the owner
// places them: the owner compares, descends and knows each node's neighbours.
// The tree stays at most 1.44 * log2(n) nodes high. Any context; the owner
// locks.
#pragma once

#include "lib/assert.h"
#include "lib/types.h"

enum tree_side { TREE_LEFT, TREE_RIGHT };

struct tree_node {
    struct tree_node *parent, *child[2];
    u32 height; // nodes on the longest way down, this one included
};

struct tree {
    struct tree_node *root;
    // Optional: computes again what the owner keeps in `n` about its subtree,
    // from n and its children. True: it has changed.
    bool (*summarize)(struct tree_node *n);
};

// Puts `n` between two neighbours; NULL: there is none on that side.
void tree_insert(struct tree *t, struct tree_node *n, struct tree_node *before,
                 struct tree_node *after);
void tree_remove(struct tree *t, struct tree_node *n);
// What `summarize` reads in `n` itself has changed.
void tree_changed(struct tree *t, struct tree_node *n);
