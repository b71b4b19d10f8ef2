// Sorting in place without recursion or memory: heap sort, O(n log n) always.
#pragma once

#include "lib/types.h"

// Orders `count` objects of `size` bytes at `base` so that no object is `less`
// than the one before it. Not stable. Any context.
void sort(void *base, size_t count, size_t size,
          bool (*less)(const void *a, const void *b));
// The same for the first `wanted` objects alone: those that are there after a
// sort of all. The others follow in any order. O(count + wanted * log count).
void sort_first(void *base, size_t count, size_t size, size_t wanted,
                bool (*less)(const void *a, const void *b));
