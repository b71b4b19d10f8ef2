// Call chains, each kept once: a tree whose paths from the root are chains, the
// outermost caller first. Every count of samples hangs on its innermost node.
//
// Memory is bounded: when it is full, new chains are counted on the longest
// part of theirs that is there, and `cut` tells how often that was.
#pragma once

#include <stddef.h>
#include <stdint.h>

// A place in code: an address in an image (images.h): the instruction that was
// interrupted, or, of a caller, the last byte of its call. IMAGE_NONE is the
// root's.
struct place {
    uint32_t image, address;
};
#define IMAGE_NONE UINT32_MAX

struct chain_node {
    struct place place;
    uint32_t parent; // its caller; the root is its own
    uint32_t marks;  // of enum chain_mark (lib/chain.h), a bit each: those that
                     // the chain up to here has
    uint32_t next;   // in its bucket of the hash table
};

struct chains {
    struct chain_node *nodes; // [0] is the root
    uint32_t count, room, max;
    uint32_t *buckets; // a power of two, at least `room`
    uint64_t cut;
};

#define CHAIN_ROOT 0u
#define CHAIN_NONE UINT32_MAX

// At most `max` nodes. -1: no memory.
int chains_init(struct chains *c, uint32_t max);
void chains_free(struct chains *c);
// Only the root stays.
void chains_clear(struct chains *c);
// The node of `place` called by `parent`; `parent` itself when memory is out.
uint32_t chains_add(struct chains *c, uint32_t parent, struct place place);
// The same, or CHAIN_NONE if it is new.
uint32_t chains_find(const struct chains *c, uint32_t parent,
                     struct place place);
