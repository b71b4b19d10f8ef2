// The places in code that a profile's chains have, each once, with a number
// from 1 on.
#pragma once

#include "strobe.h"

struct places {
    const struct profile *profile;
    struct place *list; // by image and address
    uint32_t count;
};

// No memory ends the program.
void places_init(struct places *p, const struct profile *profile);
void places_free(struct places *p);
// The number of the place of a chain's node, which is not the root.
uint32_t places_number(const struct places *p, uint32_t node);
