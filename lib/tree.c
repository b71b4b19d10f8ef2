// AVL trees: the heights of two siblings differ by at most one. After any
// change one walk towards the root recomputes heights and summaries and rotates
// where the heights of two siblings differ by two.

#include "lib/tree.h"

static u32 height(const struct tree_node *n)
{
    return n ? n->height : 0;
}

// True when the node's height or summary has changed.
static bool refresh(const struct tree *t, struct tree_node *n)
{
    u32 old = n->height;
    n->height =
        1 + MAX(height(n->child[TREE_LEFT]), height(n->child[TREE_RIGHT]));
    bool changed = n->height != old;
    if (t->summarize && t->summarize(n))
        changed = true;
    return changed;
}

// Replaces `n` below its parent by `by`, which may be NULL.
static void replace(struct tree *t, struct tree_node *n, struct tree_node *by)
{
    struct tree_node *parent = n->parent;
    if (!parent)
        t->root = by;
    else
        parent->child[n == parent->child[TREE_RIGHT]] = by;
    if (by)
        by->parent = parent;
}

static void adopt(struct tree_node *n, enum tree_side side,
                  struct tree_node *child)
{
    n->child[side] = child;
    if (child)
        child->parent = n;
}

// The child of `n` on `side` takes its place; `n` becomes its child on the
// other side.
static struct tree_node *rotate(struct tree *t, struct tree_node *n,
                                enum tree_side side)
{
    struct tree_node *up = n->child[side];
    replace(t, n, up);
    adopt(n, side, up->child[!side]);
    adopt(up, !side, n);
    refresh(t, n);
    refresh(t, up);
    return up;
}

// Returns the root of the balanced subtree.
static struct tree_node *balance(struct tree *t, struct tree_node *n)
{
    u32 left = height(n->child[TREE_LEFT]);
    u32 right = height(n->child[TREE_RIGHT]);
    assert(left <= right + 2 && right <= left + 2);
    if (left <= right + 1 && right <= left + 1)
        return n;
    enum tree_side high = right > left ? TREE_RIGHT : TREE_LEFT;
    struct tree_node *child = n->child[high];
    if (height(child->child[!high]) > height(child->child[high]))
        rotate(t, child, !high);
    return rotate(t, n, high);
}

// Walks towards the root until nothing changes. `moved` (on the way, or NULL)
// has a new place: the walk does not stop below it.
static void walk_up(struct tree *t, struct tree_node *n,
                    const struct tree_node *moved)
{
    while (n) {
        bool changed = refresh(t, n);
        struct tree_node *top = balance(t, n);
        if (n == moved)
            moved = NULL;
        else if (!changed && top == n && !moved)
            return;
        n = top->parent;
    }
}

void tree_insert(struct tree *t, struct tree_node *n, struct tree_node *before,
                 struct tree_node *after)
{
    *n = (struct tree_node){ .height = 0 };
    // One of two neighbours is below the other, and has no child on that side.
    if (before && !before->child[TREE_RIGHT]) {
        adopt(before, TREE_RIGHT, n);
    } else if (after) {
        adopt(after, TREE_LEFT, n);
    } else {
        assert(!t->root);
        t->root = n;
    }
    walk_up(t, n, NULL);
}

void tree_remove(struct tree *t, struct tree_node *n)
{
    struct tree_node *left = n->child[TREE_LEFT];
    struct tree_node *right = n->child[TREE_RIGHT], *changed = n->parent;
    struct tree_node *next = NULL;
    if (!left || !right) {
        replace(t, n, left ? left : right);
    } else {
        // The next node, which has no left child, replaces it.
        next = right;
        while (next->child[TREE_LEFT])
            next = next->child[TREE_LEFT];
        changed = next == right ? next : next->parent;
        replace(t, next, next->child[TREE_RIGHT]);
        replace(t, n, next);
        adopt(next, TREE_LEFT, left);
        adopt(next, TREE_RIGHT, n->child[TREE_RIGHT]);
    }
    walk_up(t, changed, next);
}

void tree_changed(struct tree *t, struct tree_node *n)
{
    walk_up(t, n, NULL);
}
