// lib/inflate.c: blocks of all kinds (test_cfi.c has larger ones, of zlib), and
// damaged streams.
#include "test.h"

#include "lib/inflate.h"

static const u8 stored[] = { 0x78, 0x01, 0x01, 0x05, 0x00, 0xfa, 0xff, 0x61,
                             0x62, 0x63, 0x61, 0x62, 0x05, 0xbf, 0x01, 0xea };
static const u8 fixed[] = { 0x78, 0x01, 0x4b, 0x4c, 0x4a, 0x4e, 0x24,
                            0x84, 0x14, 0x01, 0x0c, 0xf9, 0x0d, 0xea };
static const char text[] = "abcabcabcabcabcabcabcabcabcabcabcabc!";

static void whole(void **state UNUSED)
{
    u8 out[64];
    assert_true(inflate(stored, sizeof(stored), out, 5));
    assert_memory_equal(out, "abcab", 5);
    assert_true(inflate(fixed, sizeof(fixed), out, sizeof(text) - 1));
    assert_memory_equal(out, text, sizeof(text) - 1);
}

static void other_sizes(void **state UNUSED)
{
    u8 out[64];
    for (u32 size = 0; size <= sizeof(out); size++)
        assert_int_equal(inflate(fixed, sizeof(fixed), out, size),
                         size == sizeof(text) - 1);
    for (u32 bytes = 0; bytes < sizeof(fixed); bytes++)
        assert_false(inflate(fixed, bytes, out, sizeof(text) - 1));
}

// ASan guards the ends of both. A checksum finds nearly all damage.
static void damaged(void **state UNUSED)
{
    u32 found = 0, rounds = 100000;
    for (u32 i = 0; i < rounds; i++) {
        const u8 *from = i % 2 ? stored : fixed;
        size_t bytes = i % 2 ? sizeof(stored) : sizeof(fixed), size;
        u8 *copy = malloc(bytes), *out = malloc(size = random_below(50) + 1);
        memcpy(copy, from, bytes);
        for (u32 n = 0; n < 1 + i % 4; n++)
            copy[2 + random_below((u32)bytes - 2)] = (u8)random_u64();
        found += !inflate(copy, bytes, out, size);
        free(copy);
        free(out);
    }
    assert_true(found > rounds - rounds / 50);
}

int main(void)
{
    random_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),
        cmocka_unit_test(other_sizes),
        cmocka_unit_test(damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
