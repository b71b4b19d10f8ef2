// arch/i386/acpi/sleep_type.c: \_S5 in AML of every form that compilers give
// it, between other bytes, cut at each byte, and with bits flipped.
// link: arch/i386/acpi/sleep_type.c
#include "arch/i386/acpi/sleep_type.h"
#include "test.h"

#define FLIPS 200000

// Calls the parser with a copy of exactly these bytes.
static bool find(const u8 *aml, u32 size, struct sleep_type *out)
{
    u8 *copy = malloc(size ? size : 1);
    memcpy(copy, aml, size);
    bool found = sleep_type_find(copy, size, out);
    free(copy);
    return found;
}

struct bytes {
    u8 at[512];
    u32 size;
};

static void put(struct bytes *b, const void *bytes, u32 n)
{
    memcpy(b->at + b->size, bytes, n);
    b->size += n;
}

static void put_byte(struct bytes *b, u8 byte)
{
    put(b, &byte, 1);
}

// An integer in the encoding with `bytes` bytes; 0: as Zero or One.
static void put_integer(struct bytes *b, u64 value, u32 bytes)
{
    static const u8 prefixes[] = {
        [1] = 0x0a, [2] = 0x0b, [4] = 0x0c, [8] = 0x0e
    };
    if (!bytes && value <= 1) {
        put_byte(b, (u8)value);
        return;
    }
    bytes = bytes ? bytes : 1;
    put_byte(b, prefixes[bytes]);
    put(b, &value, bytes);
}

// Name (\_S5, Package () { ... }), with a length of `more` + 1 bytes.
static void put_object(struct bytes *b, bool root, u32 more, u8 count,
                       const struct bytes *elements)
{
    u32 length = 1 + more + 1 + elements->size;
    put(b, root ? "\x08\\_S5_\x12" : "\x08_S5_\x12", root ? 7 : 6);
    if (!more) {
        put_byte(b, (u8)length);
    } else {
        put_byte(b, (u8)(more << 6 | (length & 0xf)));
        for (u32 i = 0; i < more; i++)
            put_byte(b, (u8)(length >> (4 + 8 * i)));
    }
    put_byte(b, count);
    put(b, elements->at, elements->size);
}

static void put_noise(struct bytes *b)
{
    static const char *const decoys[] = { "_S5_",
                                          "\x08_S5_",
                                          "\x08_S5_\x12",
                                          "\x08_S5_\x12\x06\x04MAIN",
                                          "\x08_S5_\x0a\x05",
                                          "\x08_S4_" };
    for (u32 n = random_below(4); n; n--) {
        const char *decoy = decoys[random_below(6)];
        put(b, decoy, (u32)strlen(decoy));
    }
}

static u32 random_size(void)
{
    static const u32 sizes[] = { 0, 1, 2, 4, 8 };
    return sizes[random_below(5)];
}

// The bytes up to the end of the object, whose end is returned in *needed.
static struct bytes make(u8 *a, u8 *b, u32 *needed)
{
    struct bytes aml = { .size = 0 }, elements = { .size = 0 };
    *a = (u8)random_below(8);
    *b = (u8)random_below(8);
    put_integer(&elements, *a, random_size());
    put_integer(&elements, *b, random_size());
    for (u32 n = random_below(3); n; n--)
        put_integer(&elements, 0, 0);
    put_noise(&aml);
    put_object(&aml, random_below(2), random_below(4), 4, &elements);
    *needed = aml.size;
    put_noise(&aml);
    return aml;
}

static void test_all_forms(void **state)
{
    (void)state;
    for (u32 i = 0; i < 20000; i++) {
        u8 a, b;
        u32 needed;
        struct bytes aml = make(&a, &b, &needed);
        struct sleep_type type = { 0 };
        assert_true(find(aml.at, aml.size, &type));
        assert_true(type.known && type.a == a && type.b == b);
    }
}

// A package that extends beyond the end is not read, even if the two numbers
// are there.
static void test_cut_at_each_byte(void **state)
{
    (void)state;
    for (u32 i = 0; i < 2000; i++) {
        u8 a, b;
        u32 needed;
        struct bytes aml = make(&a, &b, &needed);
        for (u32 size = 0; size < aml.size; size++) {
            struct sleep_type type = { .a = 77 };
            bool found = find(aml.at, size, &type);
            assert_int_equal(found, size >= needed);
            assert_int_equal(type.a, found ? a : 77);
        }
    }
}

static void test_flipped_bits(void **state)
{
    (void)state;
    for (u32 i = 0; i < FLIPS; i++) {
        u8 a, b;
        u32 needed;
        struct bytes aml = make(&a, &b, &needed);
        for (u32 n = 1 + random_below(3); n; n--)
            aml.at[random_below(aml.size)] ^= (u8)(1 << random_below(8));
        struct sleep_type type = { 0 };
        if (find(aml.at, aml.size, &type))
            assert_true(type.a <= SLEEP_TYPE_MAX && type.b <= SLEEP_TYPE_MAX);
    }
}

static void test_single_forms(void **state)
{
    static const struct {
        const char *what, *aml;
        u32 size;
        bool found;
        u8 a, b;
    } cases[] = {
        { "QEMU's pc", "\x08_S5_\x12\x06\x04\x00\x00\x00\x00", 12, true, 0, 0 },
        { "one word for both", "\x08_S5_\x12\x05\x01\x0b\x07\x05", 11, true, 7,
          5 },
        { "no element", "\x08_S5_\x12\x02\x00", 8, false, 0, 0 },
        { "a length of 0", "\x08_S5_\x12\x00\x02\x00\x00", 10, false, 0, 0 },
        { "elements beyond the length", "\x08_S5_\x12\x03\x02\x00\x00", 10,
          false, 0, 0 },
        { "reserved bits of a length", "\x08_S5_\x12\x75\x00\x02\x00\x00", 11,
          false, 0, 0 },
        { "a type of 8", "\x08_S5_\x12\x05\x02\x0a\x08\x00", 11, false, 0, 0 },
        { "ones", "\x08_S5_\x12\x04\x02\xff\xff", 10, false, 0, 0 },
        { "a method", "\x14_S5_\x12\x04\x02\x00\x00", 10, false, 0, 0 },
        { "of a device", "\x08.\\_S5_\x12\x04\x02\x00\x00", 12, false, 0, 0 },
        { "no name", "_S5_\x12\x04\x02\x00\x00", 9, false, 0, 0 },
        { "nothing", "", 0, false, 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sleep_type type = { 0 };

        bool found = find((const u8 *)cases[i].aml, cases[i].size, &type);
        if (found != cases[i].found || type.a != cases[i].a ||
            type.b != cases[i].b)
            fail_msg("%s: %d, %u, %u", cases[i].what, found, type.a, type.b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_forms),
        cmocka_unit_test(test_all_forms),
        cmocka_unit_test(test_cut_at_each_byte),
        cmocka_unit_test(test_flipped_bits),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
