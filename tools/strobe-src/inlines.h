// Inlined functions: each becomes a frame of its own in the chains, called by
// the function that contains its code.
//
// Each real image with inlined functions gets a second image, with the same
// path and build id, and with a symbol "NAME (inlined)" for each name. Each
// inlined function at a place gets a place there, so that tables and trees
// count it like any function. Idle samples count for the containing function.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "user/libprofile/samples.h"

struct inlined {
    struct place place; // of its code, in the real image
    uint32_t depth;     // 1: inlined directly into the containing function
    const char *name;
};

struct inlines {
    bool expanded;        // inlined functions are in the chains
    struct inlined *list; // [N - 1] is at address N of its image
    uint32_t count;
    uint32_t first_image; // the first image of inlined functions
    uint32_t *real;       // real image of image `first_image` + index
    char **texts;         // names of the symbols
    uint32_t text_count;
};

struct profile;
struct lines;

// Inserts inlined functions into the chains of all samples. Lack of memory ends
// the program.
void inlines_expand(struct profile *p, struct lines *l);
void inlines_free(struct inlines *i);
// Returns the inlined function at a chain's place, or NULL if it is not one.
const struct inlined *inlines_find(const struct inlines *i, struct place place);
// Returns the real image, which contains the code.
uint32_t inlines_image(const struct inlines *i, uint32_t image);
