// The distinct places in a profile's chains, numbered from 1.
#pragma once

#include "strobe.h"

struct places {
    const struct profile *profile;
    struct place *list; // sorted by image and address
    uint32_t count;
};

// Lack of memory ends the program.
void places_init(struct places *p, const struct profile *profile);
void places_free(struct places *p);
// Returns the number of a node's place. The node must not be the root.
uint32_t places_number(const struct places *p, uint32_t node);
