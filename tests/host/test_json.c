// JSON strings of any bytes are valid: escapes, UTF-8, and invalid UTF-8.
// link: user/libstrobe/table.c
#include "user/libstrobe/strobe.h" // before cmocka, which has a fail(), too

#include "test.h"

static void check(const char *text, size_t size, const char *want)
{
    char *got;
    size_t length;
    FILE *out = open_memstream(&got, &length);

    assert_non_null(out);
    json_string(out, text, size);
    fclose(out);
    assert_string_equal(got, want);
    free(got);
}

// Checks a copy at the end of a heap block: ASan detects a read beyond it.
static void check_exact(const char *text, size_t size, const char *want)
{
    char *copy = malloc(size);

    memcpy(copy, text, size);
    check(copy, size, want);
    free(copy);
}
#define CHECK(text, want) check_exact(text, sizeof(text) - 1, want)

static void plain_and_escapes(void **state UNUSED)
{
    check("", 0, "\"\"");
    CHECK("luaV_execute", "\"luaV_execute\"");
    CHECK("a\"b\\c", "\"a\\\"b\\\\c\"");
    CHECK("\0\n\x1f\x7f", "\"\\u0000\\u000a\\u001f\\u007f\"");
}

static void utf8(void **state UNUSED)
{
    CHECK("\xc3\xa9", "\"\xc3\xa9\"");
    CHECK("\xe2\x82\xac", "\"\xe2\x82\xac\"");
    CHECK("\xf0\x9f\x94\xa5", "\"\xf0\x9f\x94\xa5\"");
    CHECK("\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\"");
}

static void no_utf8(void **state UNUSED)
{
    CHECK("\xff", "\"\\u00ff\"");
    CHECK("\xc3", "\"\\u00c3\"");                       // cut
    CHECK("\xe2\x82", "\"\\u00e2\\u0082\"");            // cut
    CHECK("\xc0\xaf", "\"\\u00c0\\u00af\"");            // overlong
    CHECK("\xe0\x80\xaf", "\"\\u00e0\\u0080\\u00af\""); // overlong
    CHECK("\xed\xa0\x80", "\"\\u00ed\\u00a0\\u0080\""); // surrogate
    CHECK("\xf4\x90\x80\x80", "\"\\u00f4\\u0090\\u0080\\u0080\"");
    CHECK("\xc3(", "\"\\u00c3(\"");
}

// C1 and bidirectional controls, which change how a terminal shows the rest.
static void controls(void **state)
{
    (void)state;
    CHECK("\xc2\x9b", "\"\\u009b\"");
    CHECK("a\xe2\x80\xaetxt", "\"a\\u202etxt\"");
    CHECK("\xd8\x9c\xe2\x80\x8f\xe2\x81\xa6", "\"\\u061c\\u200f\\u2066\"");
    CHECK("\xe2\x82\xac", "\"\xe2\x82\xac\"");
}

static void check_printable(const char *text, const char *want)
{
    char *copy = strdup(text);

    assert_ptr_equal(printable(copy), copy);
    assert_string_equal(copy, want);
    free(copy);
}

static void terminals(void **state UNUSED)
{
    check_printable("", "");
    check_printable("luaV_execute [x] ~", "luaV_execute [x] ~");
    check_printable("\x1b[2J\n\t\r\x7f.", "?[2J????.");
    check_printable("\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac");
    check_printable("\xc2\x9b\x32J", "??2J"); // the C1 form of CSI
    check_printable("\xc2\xa0", "\xc2\xa0");
    check_printable("\x9b\xff\xc3", "???");
    // RIGHT-TO-LEFT OVERRIDE shows "exe.txt" as "txt.exe"; its neighbours do
    // not.
    check_printable("a\xe2\x80\xaetxt.exe", "a???txt.exe");
    check_printable("\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8f\xd8\x9c",
                    "???????????");
    check_printable("\xe2\x80\xa6\xe2\x81\xa5\xd8\x9b",
                    "\xe2\x80\xa6\xe2\x81\xa5\xd8\x9b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(controls),  cmocka_unit_test(plain_and_escapes),
        cmocka_unit_test(utf8),      cmocka_unit_test(no_utf8),
        cmocka_unit_test(terminals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
