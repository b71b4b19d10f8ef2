// Sorting in place without recursion or memory: heap sort, O(n log n) always.
#pragma once

#include "lib/types.h"

// Orders `count` objects of `size` bytes at `base` so that no object is `less`
// than the one before it. Not stable. Any context.
void sort(void *base, size_t count, size_t size,
          bool (*less)(const void *a, const void *b));
