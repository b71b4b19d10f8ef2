// lib/cpio: entries of an archive; truncated and corrupt archives.
#include "test.h"

#include "lib/cpio.h"

struct archive {
    u8 *bytes;
    size_t size;
    size_t first_end, second_start, second_end; // of the archives in sample()
};

static void append(struct archive *a, const void *bytes, size_t n)
{
    a->bytes = realloc(a->bytes, a->size + n);
    memcpy(a->bytes + a->size, bytes, n);
    a->size += n;
}

static void pad(struct archive *a, size_t align)
{
    while (a->size % align)
        append(a, "", 1);
}

static void add(struct archive *a, const char *name, u32 mode, const void *data,
                size_t n)
{
    char head[111];
    snprintf(head, sizeof(head),
             "070701%08X%08x%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", 7,
             mode, 1, 2, 3, 4, (u32)n, 5, 6, 8, 9, (u32)strlen(name) + 1, 0);
    append(a, head, 110);
    append(a, name, strlen(name) + 1);
    pad(a, 4);
    append(a, data, n);
    pad(a, 4);
}

static struct archive sample(void)
{
    struct archive a = { .bytes = NULL };
    add(&a, "dir", 040755, "", 0);
    add(&a, "dir/file", 0100644, "contents", 8);
    add(&a, "TRAILER!!!", 0, "", 0);
    a.first_end = a.size;
    pad(&a, 512);
    a.second_start = a.size;
    add(&a, "x", 0100600, "abc", 3);
    add(&a, "TRAILER!!!", 0, "", 0);
    a.second_end = a.size;
    pad(&a, 512);
    return a;
}

static void entries(void **state)
{
    (void)state;
    struct archive a = sample();
    struct cpio_entry e;
    size_t pos = 0;
    assert_int_equal(cpio_next(a.bytes, a.size, &pos, &e), CPIO_ENTRY);
    assert_string_equal(e.name, "dir");
    assert_int_equal(e.mode, 040755);
    assert_int_equal(e.size, 0);
    assert_int_equal(cpio_next(a.bytes, a.size, &pos, &e), CPIO_ENTRY);
    assert_string_equal(e.name, "dir/file");
    assert_int_equal(e.size, 8);
    assert_memory_equal(e.data, "contents", 8);
    assert_int_equal(e.ino, 7);
    assert_int_equal(e.uid, 1);
    assert_int_equal(e.gid, 2);
    assert_int_equal(e.nlink, 3);
    assert_int_equal(e.mtime, 4);
    assert_int_equal(e.dev_major, 5);
    assert_int_equal(e.dev_minor, 6);
    assert_int_equal(e.rdev_major, 8);
    assert_int_equal(e.rdev_minor, 9);
    assert_int_equal(cpio_next(a.bytes, a.size, &pos, &e), CPIO_ENTRY);
    assert_string_equal(e.name, "x");
    assert_int_equal(cpio_next(a.bytes, a.size, &pos, &e), CPIO_END);
    free(a.bytes);
}

// Truncated at every length: no read beyond the end (ASan), no wrong entry.
static void truncated(void **state)
{
    (void)state;
    struct archive a = sample();
    for (size_t size = 0; size <= a.size; size++) {
        u8 *cut = malloc(size + !size);
        struct cpio_entry e;
        size_t pos = 0, before;
        enum cpio_result result;
        memcpy(cut, a.bytes, size);
        do {
            before = pos;
            result = cpio_next(cut, size, &pos, &e);
            if (result == CPIO_ENTRY)
                assert_true(pos > before && e.data + e.size <= cut + size);
        } while (result == CPIO_ENTRY);
        bool whole = (size >= a.first_end && size <= a.second_start) ||
                     size >= a.second_end;
        assert_int_equal(result, whole ? CPIO_END : CPIO_TRUNCATED);
        assert_true(pos <= size);
        free(cut);
    }
    free(a.bytes);
}

static void corrupt(void **state)
{
    (void)state;
    struct archive a = sample();
    struct cpio_entry e;
    size_t pos = 0;
    a.bytes[3] = 'x';
    assert_int_equal(cpio_next(a.bytes, a.size, &pos, &e), CPIO_CORRUPT);
    a.bytes[3] = '7';
    a.bytes[60] = 'g';
    assert_int_equal(cpio_next(a.bytes, a.size, &pos, &e), CPIO_CORRUPT);
    a.bytes[60] = '0';
    memcpy(a.bytes + 54, "FFFFFFFF", 8); // a size that wraps 32 bits
    assert_int_equal(cpio_next(a.bytes, a.size, &pos, &e), CPIO_TRUNCATED);
    memcpy(a.bytes + 54, "00000000", 8);
    memcpy(a.bytes + 94, "00000003", 8); // a name without its NUL
    assert_int_equal(cpio_next(a.bytes, a.size, &pos, &e), CPIO_CORRUPT);
    memcpy(a.bytes + 94, "00000000", 8);
    assert_int_equal(cpio_next(a.bytes, a.size, &pos, &e), CPIO_CORRUPT);
    free(a.bytes);
}

static void noise(void **state)
{
    (void)state;
    for (u32 round = 0; round < 3000; round++) {
        struct archive a = sample();
        struct cpio_entry e;
        size_t pos = 0;
        for (u32 i = random_below(8); i; i--)
            a.bytes[random_below((u32)a.size)] = (u8)random_u64();
        while (cpio_next(a.bytes, a.size, &pos, &e) == CPIO_ENTRY) {
            assert_true(e.data + e.size <= a.bytes + a.size);
            assert_true(strlen(e.name) < a.size);
        }
        free(a.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries),
        cmocka_unit_test(truncated),
        cmocka_unit_test(corrupt),
        cmocka_unit_test(noise),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
