// Heap sort (J. W. J. Williams 1964): slower than the fastest by a constant,
// but with the same bound for every input, even corrupt or hostile ones.
#include "user/libread/sort.h"

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

// The heap is upside down: object i is i * size below the root, which is the
// last. Moves object `i` until no child of it is less. Children of i: 2i+1 and
// 2i+2, if below `count`.
static void sink(u8 *root, size_t i, size_t count, size_t size,
                 bool (*less)(const void *, const void *))
{
    assert_checked(i < count);
    while (i < count / 2) {
        size_t child = 2 * i + 1;
        if (child + 1 < count &&
            less(root - (child + 1) * size, root - child * size))
            child++;
        if (!less(root - child * size, root - i * size))
            return;
        swap(root - i * size, root - child * size, size);
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

void sort_first(void *base, size_t count, size_t size, size_t wanted,
                bool (*less)(const void *a, const void *b))
{
    assert(less && size && (base || !count));
    if (in_order(base, count, size, less)) // linkers often write sorted tables
        return;
    u8 *next = base, *root = next + (count - 1) * size;
    for (size_t i = count / 2; i-- > 0;)
        sink(root, i, count, size, less);
    for (size_t left = count; wanted-- > 0 && left-- > 1; next += size) {
        swap(next, root, size); // the heap's last object, and the least
        sink(root, 0, left, size, less);
    }
}

void sort(void *base, size_t count, size_t size,
          bool (*less)(const void *a, const void *b))
{
    sort_first(base, count, size, count, less);
}
