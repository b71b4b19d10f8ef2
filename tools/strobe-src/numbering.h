// Numbers for keys below a bound, in the order in which the keys are added.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct numbering {
    uint32_t *of;   // number + 1 of each key; 0: it has none
    uint32_t *keys; // by number
    uint32_t count;
};

// For keys below `bound`. Lack of memory ends the program.
void numbering_init(struct numbering *n, uint32_t bound);
void numbering_free(struct numbering *n);
// Removes all keys, in time proportional to their number.
void numbering_clear(struct numbering *n);
// Returns false if the key has a number already.
bool numbering_add(struct numbering *n, uint32_t key);
// Returns the number of a key, or -1 if it has none.
static inline int64_t numbering_of(const struct numbering *n, uint32_t key)
{
    return (int64_t)n->of[key] - 1;
}
