// The functions that call tracing can choose, and their choice by patterns.
//
// link: user/libprofile/functions.c
#include "test.h"

#include "user/libprofile/functions.h"

static const char text[] = "c0101000 52 sched_switch kernel/sched/sched.c\n"
                           "c0101040 300 sched_wake kernel/sched/wake.c\n"
                           "c0102000 16 list_add lib/list.c\n"
                           "c0102010 64 format lib/format.c\n"
                           "c0103000 640 page_fault kernel/mm/fault.c\n";

static struct functions all;

static int read_all(void **state UNUSED)
{
    return functions_read(&all, text, sizeof(text) - 1) ? -1 : 0;
}

static int free_all(void **state UNUSED)
{
    functions_free(&all);
    return 0;
}

static void reads_lines(void **state UNUSED)
{
    assert_int_equal(all.count, 5);
    assert_int_equal(all.list[1].address, 0xc0101040);
    assert_int_equal(all.list[1].size, 300);
    assert_string_equal(all.list[1].name, "sched_wake");
    assert_string_equal(all.list[4].file, "kernel/mm/fault.c");
}

static void refuses_other_text(void **state UNUSED)
{
    static const char *const bad[] = {
        "c0101000 52 sched_switch\n",
        "c0101000 x sched_switch kernel/a.c\n",
        "c0101000 52 a b c\n",
        "xyz\n",
        "\n",
        "1c0101000 52 a b\n",
        "c0101000 1 a b\nc0101000 1 a b\n",
    };
    struct functions f;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_non_null(functions_read(&f, bad[i], strlen(bad[i])));
        assert_null(f.list);
    }
    assert_null(functions_read(&f, "", 0));
    assert_int_equal(f.count, 0);
    functions_free(&f);
}

static void finds_by_address(void **state UNUSED)
{
    assert_null(functions_find(&all, 0xc0100fff));
    assert_ptr_equal(functions_find(&all, 0xc0101000), &all.list[0]);
    assert_ptr_equal(functions_find(&all, 0xc0101033), &all.list[0]);
    assert_null(functions_find(&all, 0xc0101034));
    assert_ptr_equal(functions_find(&all, 0xc010327f), &all.list[4]);
    assert_null(functions_find(&all, 0xffffffff));
}

// The numbers of the chosen functions as digits.
static const char *choose(const char *patterns, uint32_t bytes)
{
    static char found[8];
    char copy[64];
    const char *list[8];
    uint32_t count = 0, chosen[5];

    snprintf(copy, sizeof(copy), "%s", patterns);
    for (char *p = strtok(copy, " "); p; p = strtok(NULL, " "))
        list[count++] = p;
    uint32_t n = functions_choose(
        &all, &(struct function_choice){ list, count, bytes }, chosen);
    for (uint32_t i = 0; i < n; i++)
        found[i] = '0' + (functions_find(&all, chosen[i]) - all.list);
    found[n] = '\0';
    return found;
}

static void chooses(void **state UNUSED)
{
    assert_string_equal(choose("", 0), "01234");
    assert_string_equal(choose("sched_*", 0), "01");
    assert_string_equal(choose("sched_* format", 0), "013");
    assert_string_equal(choose("!lib/*", 0), "014");
    assert_string_equal(choose("!lib/", 0), "014");
    assert_string_equal(choose("kernel/*", 0), "014");
    assert_string_equal(choose("kernel/mm/", 0), "4");
    assert_string_equal(choose("kernel/ !sched_w*", 0), "04");
    assert_string_equal(choose("!sched_w* kernel/", 0), "04");
    assert_string_equal(choose("kernel/*/*.c !*/mm/*", 0), "01");
    assert_string_equal(choose("nothing", 0), "");
    assert_string_equal(choose("", 64), "134");
    assert_string_equal(choose("lib/", 64), "3");
    assert_string_equal(choose("", 65), "14");
}

static void names_what_hits_nothing(void **state UNUSED)
{
    const char *list[] = { "sched_*", "!lib/*", "shed_*", "!mm/" };
    struct function_choice c = { list, 2, 0 };

    assert_null(functions_missed(&all, &c));
    c.pattern_count = 4;
    assert_string_equal(functions_missed(&all, &c), "shed_*");
    list[2] = "format";
    assert_string_equal(functions_missed(&all, &c), "!mm/");
}

static void assert_near_is(const char *pattern, const char *expected)
{
    char *printed;
    size_t size;
    FILE *f = open_memstream(&printed, &size);

    functions_print_near(&all, pattern, f);
    fclose(f);
    assert_string_equal(printed, expected);
    free(printed);
}

static void lists_what_is_near(void **state UNUSED)
{
    assert_near_is("wake", "Near are:\n    sched_wake\n");
    assert_near_is("page_falt", "Near are:\n    page_fault\n");
    assert_near_is("shed_*", "Near are:\n    sched_switch\n    sched_wake\n");
    assert_near_is("sched/*", "Near are:\n    kernel/sched/sched.c\n"
                              "    kernel/sched/wake.c\n");
    assert_near_is("!kernel/skhed/*", "Near are:\n    kernel/sched/sched.c\n"
                                      "    kernel/sched/wake.c\n");
    assert_near_is("zzz", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_lines),
        cmocka_unit_test(refuses_other_text),
        cmocka_unit_test(finds_by_address),
        cmocka_unit_test(chooses),
        cmocka_unit_test(names_what_hits_nothing),
        cmocka_unit_test(lists_what_is_near),
    };
    return cmocka_run_group_tests(tests, read_all, free_all);
}
