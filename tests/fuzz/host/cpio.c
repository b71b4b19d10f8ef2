// lib/cpio.c, compared with a reader that scans the archive byte by byte.
#include "host.h"

#include <string.h>

#include "lib/cpio.h"

#define HEADER 110u

static bool number_at(const u8 *header, u32 field, u64 *out)
{
    char digits[9] = { 0 };
    memcpy(digits, header + 6 + 8 * field, 8);
    if (strspn(digits, "0123456789abcdefABCDEF") != 8)
        return false;
    *out = strtoull(digits, NULL, 16);
    return true;
}

// Whether a valid entry is at `pos`, and the sizes of its name and data.
static bool model_entry(const u8 *a, size_t size, size_t pos, u64 *name_size,
                        u64 *data_size)
{
    u64 number;
    if (size - pos < HEADER ||
        (memcmp(a + pos, "070701", 6) && memcmp(a + pos, "070702", 6)))
        return false;
    for (u32 field = 0; field < 13; field++) {
        if (!number_at(a + pos, field, &number))
            return false;
    }
    number_at(a + pos, 11, name_size);
    number_at(a + pos, 6, data_size);
    u64 end = pos + HEADER + *name_size;
    return *name_size && ((end + 3) & ~3ull) + *data_size <= size &&
           !a[end - 1];
}

static void check_entry(const u8 *a, size_t size, size_t start,
                        const struct cpio_entry *e)
{
    u64 name_size, data_size, mode;
    REQUIRE(model_entry(a, size, start, &name_size, &data_size));
    number_at(a + start, 1, &mode);
    REQUIRE(e->name == (const char *)a + start + HEADER);
    REQUIRE(strlen(e->name) < name_size && strcmp(e->name, "TRAILER!!!"));
    REQUIRE(e->size == data_size && e->mode == mode);
    size_t data = (start + HEADER + name_size + 3) & ~(size_t)3;
    REQUIRE(e->data == a + data);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    u8 *a = guarded(data, size);
    struct cpio_entry e;
    size_t pos = 0, next = 0;
    enum cpio_result result;
    u64 sum = 0, n, m;
    while ((result = cpio_next(a, size, &pos, &e)) == CPIO_ENTRY) {
        // The entry begins at or after the end of the previous one.
        size_t start = (size_t)((const u8 *)e.name - a) - HEADER;
        REQUIRE(start >= next && pos > start && pos <= size);
        check_entry(a, size, start, &e);
        for (u32 i = 0; i < e.size; i++)
            sum += e.data[i];
        next = pos;
    }
    REQUIRE(pos <= size && sum != ~0ull);
    if (result != CPIO_END)
        REQUIRE(!model_entry(a, size, MIN(pos, size), &n, &m));
    free(a);
    return 0;
}
