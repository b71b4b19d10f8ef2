// arch/i386/cpu/mca.c against codes of each form in the manual's tables.
// link: arch/i386/cpu/mca.c
#include "arch/i386/cpu/mca.h"
#include "test.h"

static const struct {
    u32 code;
    const char *text;
} codes[] = {
    { 0x0000, "no error" },
    { 0x0001, "unclassified" },
    { 0x0005, "internal parity" },
    { 0x0400, "internal timer" },
    { 0x0401, "internal" },
    { 0x07ff, "internal" },
    { 0x0007, "code 0x7, of this model of CPU" },
    { 0x000d, "cache, level 1" },
    { 0x0014, "TLB, level 0: data" },
    { 0x0019, "TLB, level 1: generic" },
    { 0x0090, "memory controller, channel 0: read" },
    { 0x00a3, "memory controller, channel 3: write" },
    { 0x00cf, "memory controller: scrub" },
    { 0x0290, "memory controller, channel 0: read" },
    { 0x0134, "cache, level 0: data read, data" },
    { 0x0151, "cache, level 1: instruction, instruction" },
    { 0x1151, "cache, level 1: instruction, instruction" },
    { 0x01f9, "cache, level 1: reserved, generic" },
    { 0x0800, "bus, level 0: error of memory, this CPU asked" },
    { 0x0e0b, "bus, level 3: error of I/O, generic" },
    { 0x0f0f, "bus, level 3: error of other, generic, timed out" },
    { 0x2000, "code 0x2000, of this model of CPU" },
};

static void test_codes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        char text[96];
        mca_describe_code(codes[i].code, text, sizeof(text));
        assert_string_equal(text, codes[i].text);
    }
}

// Every code has a description, which fits into the caller's buffer.
static void test_all_codes(void **state)
{
    (void)state;
    for (u32 code = 0; code <= 0xffff; code++) {
        char text[96];
        int n = mca_describe_code(code, text, sizeof(text));
        assert_true(n > 0 && n < (int)sizeof(text));
    }
}

static void test_flags(void **state)
{
    char text[96];
    (void)state;
    mca_describe_flags(0xb200000000000000, text, sizeof(text));
    assert_string_equal(text, "uncorrected, context corrupt");
    mca_describe_flags(0x9000000000000000, text, sizeof(text));
    assert_string_equal(text, "corrected");
    int n = mca_describe_flags(~0ull & ~(1ull << 60), text, sizeof(text));
    assert_string_equal(text, "uncorrected, context corrupt, an earlier one is "
                              "overwritten, not enabled, software must act");
    assert_true(n < (int)sizeof(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_all_codes),
        cmocka_unit_test(test_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
