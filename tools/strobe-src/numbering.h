// Keys below a bound, each with a number in the order in which they came.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct numbering {
    uint32_t *of;   // of each key: its number plus 1; 0: it has none
    uint32_t *keys; // by number
    uint32_t count;
};

// Of keys below `bound`. No memory ends the program.
void numbering_init(struct numbering *n, uint32_t bound);
void numbering_free(struct numbering *n);
// Forgets all, in the time that those take that have a number.
void numbering_clear(struct numbering *n);
// True: it is new.
bool numbering_add(struct numbering *n, uint32_t key);
// -1: it has none.
static inline int64_t numbering_of(const struct numbering *n, uint32_t key)
{
    return (int64_t)n->of[key] - 1;
}
