// Call chains as a prefix tree: each path from the root is a chain, the
// outermost caller first, stored once. A count of samples refers to the
// chain's innermost node.
//
// Memory is bounded. When the tree is full, a new chain is counted on its
// longest prefix that the tree already has, and `cut` counts these cases.
#pragma once

#include <stddef.h>
#include <stdint.h>

// A place in code: an address in an image (images.h). It is the interrupted
// instruction or, for a caller, the last byte of its call. The root's image is
// IMAGE_NONE.
struct place {
    uint32_t image, address;
};
#define IMAGE_NONE UINT32_MAX

struct chain_node {
    struct place place;
    uint32_t parent; // the caller's node; the root is its own parent
    uint32_t marks;  // bits of enum chain_mark (user/libread/call_chain.h): all
                     // marks from the root to this node
    uint32_t next;   // next node in the same bucket of the hash table
};

struct chains {
    struct chain_node *nodes; // [0] is the root
    uint32_t count, room, max;
    uint32_t *buckets; // count is a power of two, at least `room`
    uint64_t cut;
};

#define CHAIN_ROOT 0u
#define CHAIN_NONE UINT32_MAX

// `max`: limit of the number of nodes. Returns -1 when out of memory.
int chains_init(struct chains *c, uint32_t max);
void chains_free(struct chains *c);
// Removes all nodes except the root.
void chains_clear(struct chains *c);
// Returns the node of `place` called by `parent`, adding it if needed, or
// `parent` itself when the tree is full or out of memory.
uint32_t chains_add(struct chains *c, uint32_t parent, struct place place);
// Returns the node of `place` called by `parent`, or CHAIN_NONE if there is
// none.
uint32_t chains_find(const struct chains *c, uint32_t parent,
                     struct place place);
