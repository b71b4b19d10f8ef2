// Numbers as text: put_decimal and put_fixed write what printf does.
//
// link: user/libstrobe/table.c
#include "test.h"

#undef fail // strobe has a function of that name
#include "user/libstrobe/strobe.h"

static void assert_decimal(u64 value)
{
    char text[NUMBER_SIZE], expected[NUMBER_SIZE];

    snprintf(expected, sizeof(expected), "%llu", (unsigned long long)value);
    assert_ptr_equal(put_decimal(text, value), text + strlen(expected));
    assert_string_equal(text, expected);
}

static void decimals(void **state UNUSED)
{
    u64 power = 1;

    assert_decimal(0);
    assert_decimal(UINT64_MAX);
    for (u32 i = 0; i < 20; i++, power *= 10) {
        assert_decimal(power - 1);
        assert_decimal(power);
    }
    for (u32 i = 0; i < 1000; i++)
        assert_decimal(random_u64() >> random_below(64));
}

static void assert_fixed(double value, unsigned digits)
{
    char text[NUMBER_SIZE], expected[NUMBER_SIZE];

    snprintf(expected, sizeof(expected), "%.*f", (int)digits, value);
    assert_ptr_equal(put_fixed(text, value, digits), text + strlen(expected));
    assert_string_equal(text, expected);
}

// Also halves, which are rounded to even, and what is next to one.
static void fixed(void **state UNUSED)
{
    static const double cases[] = { 0,     0.005, 0.015, 0.125, 0.375, 0.5,
                                    1.005, 1.5,   2.5,   2.675, 9.995, 99.995,
                                    0.05,  0.25,  0.75,  1e-9,  1e6 };

    for (unsigned digits = 0; digits <= 2; digits++) {
        for (u32 i = 0; i < ARRAY_SIZE(cases); i++)
            assert_fixed(cases[i], digits);
        for (u32 i = 0; i < 10000; i++) {
            assert_fixed(random_below(2000000000) / 100.0, digits);
            assert_fixed((random_below(20000) + 0.5) / 100, digits);
            assert_fixed(random_u64() * 0x1p-64, digits);
        }
    }
}

static void what_is_too_large_has_an_exponent(void **state UNUSED)
{
    char text[NUMBER_SIZE];

    put_fixed(text, 4e9, 0);
    assert_string_equal(text, "4e+09");
    put_fixed(text, 1e300, 2);
    assert_string_equal(text, "1.00e+300");
    put_fixed(text, -0.5, 1);
    assert_string_equal(text, "-5.0e-01");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimals),
        cmocka_unit_test(fixed),
        cmocka_unit_test(what_is_too_large_has_an_exponent),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
