// Heap sort (J. W. J. Williams 1964): slower than the fastest by a constant,
// but with the same bound for every input, even corrupt or hostile ones.
#include "lib/sort.h"

#include "lib/assert.h"
#include "lib/string.h"

// Word by word, then the remaining bytes. (An object may be unaligned.)
static void swap(u8 *a, u8 *b, size_t size)
{
    for (; size >= sizeof(u32);
         size -= sizeof(u32), a += sizeof(u32), b += sizeof(u32)) {
        u32 x, y;
        memcpy(&x, a, sizeof(x));
        memcpy(&y, b, sizeof(y));
        memcpy(a, &y, sizeof(y));
        memcpy(b, &x, sizeof(x));
    }
    for (; size > 0; size--, a++, b++) {
        u8 byte = *a;
        *a = *b;
        *b = byte;
    }
}

// Moves object `i` down until no child of it is greater. Children of i: 2i+1
// and 2i+2, if below `count`.
static void sink(u8 *base, size_t i, size_t count, size_t size,
                 bool (*less)(const void *, const void *))
{
    assert_checked(i < count);
    while (i < count / 2) {
        size_t child = 2 * i + 1;
        if (child + 1 < count &&
            less(base + child * size, base + (child + 1) * size))
            child++;
        if (!less(base + i * size, base + child * size))
            return;
        swap(base + i * size, base + child * size, size);
        i = child;
    }
}

static bool in_order(const u8 *base, size_t count, size_t size,
                     bool (*less)(const void *, const void *))
{
    for (size_t i = 1; i < count; i++) {
        if (less(base + i * size, base + (i - 1) * size))
            return false;
    }
    return true;
}

void sort(void *base, size_t count, size_t size,
          bool (*less)(const void *a, const void *b))
{
    assert(less && size && (base || !count));
    u8 *bytes = base;
    if (in_order(base, count, size, less)) // linkers often write sorted tables
        return;
    for (size_t i = count / 2; i-- > 0;)
        sink(bytes, i, count, size, less);
    for (size_t last = count; last-- > 1;) {
        swap(bytes, bytes + last * size, size);
        sink(bytes, 0, last, size, less);
    }
}
