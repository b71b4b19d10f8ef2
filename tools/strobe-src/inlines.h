// Functions that the compiler has inlined: in the chains they become frames of
// their own, called by the function whose code they are in.
//
// Each stands at a place of its own, in an image of its own that has the path
// and build id of the real one, and a symbol "NAME (inlined)" for each name.
// So tables and trees count them as they count all functions. Idle CPUs, which
// wait in a function, count as that.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "user/libprofile/samples.h"

struct inlined {
    struct place place; // the code's
    uint32_t depth;     // 1: inlined into the function whose code it is
    const char *name;
};

struct inlines {
    bool expanded;        // they are in the chains
    struct inlined *list; // at address N of its image: [N - 1]
    uint32_t count;
    uint32_t first_image; // from this one on images are of inlined functions,
    uint32_t *real;       // each of this one
    char **texts;         // of the symbols
    uint32_t text_count;
};

struct profile;
struct lines;

// Puts them into the chains of all samples. No memory ends the program.
void inlines_expand(struct profile *p, struct lines *l);
void inlines_free(struct inlines *i);
// What is inlined at a chain's place; NULL: it is a function of its own.
const struct inlined *inlines_find(const struct inlines *i, struct place place);
// The image that has the code.
uint32_t inlines_image(const struct inlines *i, uint32_t image);
