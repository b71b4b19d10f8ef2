// Which MTRRs are chosen for a framebuffer (arch/i386/cpu/mtrr_choose.h).
// link: arch/i386/cpu/mtrr_choose.c
#include "arch/i386/cpu/mtrr_choose.h"
#include "test.h"

#define MB (1024u * 1024)
#define AT 0xe0000000u
#define ADDRESS ((1ull << 36) - 1)
#define WB 6u

static struct mtrrs m;
static const char *why;

// `count` registers, none of them used; all else is uncacheable.
static int start(void **state UNUSED)
{
    m = (struct mtrrs){ .cap = 8 | MTRR_CAP_WC,
                        .standard = MTRR_ON,
                        .address = ADDRESS,
                        .count = 8 };
    return 0;
}

static void firmware(u32 i, u64 base, u64 size, u32 type)
{
    m.at[i].base = base | type;
    m.at[i].mask = (~(size - 1) & ADDRESS) | MTRR_ON;
}

// As a CPU decides: the types of the ranges that match, as bits.
static u32 types_at(u64 address)
{
    u32 types = 0;
    for (u32 i = 0; i < m.count; i++) {
        u64 mask = MTRR_ADDRESS(m.at[i].mask);
        if (m.at[i].mask & MTRR_ON && (address & mask) == (m.at[i].base & mask))
            types |= 1u << MTRR_TYPE(m.at[i].base);
    }
    return types;
}

static void expect_exactly(u64 base, u64 size)
{
    for (u64 at = base - 64 * 4096; at < base + size + 64 * 4096; at += 4096)
        assert_int_equal(types_at(at),
                         at >= base && at < base + size ? 1u << MTRR_WC : 0);
}

static void a_power_of_two_takes_one(void **state UNUSED)
{
    assert_int_equal(mtrr_choose(&m, AT, 16 * MB, &why), 16 * MB);
    assert_null(why);
    assert_int_equal(m.added, 1);
    assert_true(m.at[0].base == (AT | MTRR_WC));
    assert_true(m.at[0].mask == (0xfff000000ull | MTRR_ON));
    expect_exactly(AT, 16 * MB);
}

static void another_size_takes_several(void **state UNUSED)
{
    assert_int_equal(mtrr_choose(&m, AT, 3 * MB, &why), 3 * MB);
    assert_int_equal(m.added, 3);
    expect_exactly(AT, 3 * MB);
}

static void a_base_is_aligned_to_its_size(void **state UNUSED)
{
    assert_int_equal(mtrr_choose(&m, AT + MB, 3 * MB, &why), 3 * MB);
    assert_int_equal(m.added, 3); // 1 MB, then 2 MB at a multiple of 2 MB
    expect_exactly(AT + MB, 3 * MB);
}

static void the_largest_parts_come_first(void **state UNUSED)
{
    m.count = 2;
    assert_int_equal(mtrr_choose(&m, AT, 7 * MB, &why), 6 * MB);
    assert_string_equal(why, "no more MTRRs are free");
    expect_exactly(AT, 6 * MB);
}

static void used_registers_stay(void **state UNUSED)
{
    firmware(0, 0, 256 * MB, WB);
    firmware(2, 0xff000000u, 16 * MB, MTRR_UC);
    assert_int_equal(mtrr_choose(&m, AT, 3 * MB, &why), 3 * MB);
    assert_int_equal(m.added, 1u << 1 | 1u << 3);
    expect_exactly(AT, 3 * MB);
    for (u32 i = 0; i < 8; i++)
        firmware(i, i * MB, MB, WB);
    m.added = 0;
    assert_int_equal(mtrr_choose(&m, AT, 3 * MB, &why), 0);
    assert_string_equal(why, "no more MTRRs are free");
    assert_int_equal(m.added, 0);
}

static void the_firmware_may_have_done_it(void **state UNUSED)
{
    firmware(4, AT, 32 * MB, MTRR_WC);
    assert_int_equal(mtrr_choose(&m, AT + MB, 3 * MB, &why), 3 * MB);
    assert_null(why);
    assert_int_equal(m.added, 0);
}

static void conflicts_are_found(void **state UNUSED)
{
    firmware(1, AT + 2 * MB, MB, WB);
    assert_int_equal(mtrr_choose(&m, AT, 3 * MB, &why), 0);
    assert_string_equal(why, "an MTRR of the firmware gives it another type");
    firmware(2, 0xc0000000u, 1024 * MB, MTRR_UC);
    assert_int_equal(mtrr_choose(&m, AT, 3 * MB, &why), 0);
    assert_string_equal(why, "an MTRR of the firmware makes it uncacheable");
    assert_int_equal(m.added, 0);
}

static void unusable_mtrrs_are_left_alone(void **state UNUSED)
{
    assert_int_equal(mtrr_choose(&m, 0xa0000, MB, &why), 0);
    assert_string_equal(why, "no MTRR reaches its address");
    assert_int_equal(mtrr_choose(&m, ADDRESS + 1 - MB, 2 * MB, &why), 0);
    assert_string_equal(why, "no MTRR reaches its address");
    m.cap = 8;
    assert_int_equal(mtrr_choose(&m, AT, MB, &why), 0);
    assert_string_equal(why, "its MTRRs do not know write-combining");
    m.standard = WB;
    assert_int_equal(mtrr_choose(&m, AT, MB, &why), 0);
    assert_string_equal(why, "the firmware has left the MTRRs off");
    assert_int_equal(m.added, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_power_of_two_takes_one),
        TEST(another_size_takes_several),
        TEST(a_base_is_aligned_to_its_size),
        TEST(the_largest_parts_come_first),
        TEST(used_registers_stay),
        TEST(the_firmware_may_have_done_it),
        TEST(conflicts_are_found),
        TEST(unusable_mtrrs_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
