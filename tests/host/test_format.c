// lib/format.c against the host's snprintf.
#include "test.h"

#include "lib/format.h"

#define ROOM 300

static char ours[ROOM], theirs[ROOM];

// Compares both functions, also at every buffer size around the text's length.
#define SAME(...)                                                             \
    do {                                                                      \
        memset(ours, 'X', ROOM);                                              \
        int our_n = format(ours, ROOM, __VA_ARGS__);                          \
        int their_n = snprintf(theirs, ROOM, __VA_ARGS__);                    \
        if (our_n != their_n || strcmp(ours, theirs) != 0)                    \
            fail_msg("'%s' (%d), not '%s' (%d)", ours, our_n, theirs,         \
                     their_n);                                                \
        for (int size = 0; size <= MIN(their_n + 1, 40); size++) {            \
            char *cut = malloc(size + 1);                                     \
            cut[size] = 'X';                                                  \
            assert_int_equal(format(cut, size, __VA_ARGS__), their_n);        \
            assert_int_equal(cut[size], 'X');                                 \
            if (size > 0) {                                                   \
                assert_int_equal(cut[size - 1] == '\0' || size > their_n, 1); \
                assert_memory_equal(cut, theirs, MIN(size - 1, their_n));     \
            }                                                                 \
            free(cut);                                                        \
        }                                                                     \
    } while (0)

static void plain_text(void **state UNUSED)
{
    const char *empty = "";
    SAME("%s", "");
    SAME("nothing to convert");
    SAME("100%% sure");
    assert_int_equal(format(ours, ROOM, empty), 0);
    assert_string_equal(ours, "");
}

static void strings(void **state UNUSED)
{
    SAME("[%s] [%10s] [%-10s] [%.3s] [%8.2s] [%-8.2s]", "a", "bc", "def",
         "ghijk", "lmno", "pqrs");
    SAME("[%.0s] [%*s] [%-*s] [%.*s] [%.*s]", "no", 5, "w", -7, "x", 2, "yes",
         -1, "all");
    SAME("%c%c%3c%-3c|", 'a', 'b', 'c', 'd');
    char open_end[3] = { 'a', 'b', 'c' }; // not read beyond the precision
    SAME("%.3s", open_end);
    char *volatile none = NULL; // hides NULL from the compiler
    format(ours, ROOM, "%s %8s %.2s", none, none, none);
    assert_string_equal(ours, "(null)   (null) (n");
}

static void extremes(void **state UNUSED)
{
    SAME("%d %d %d", INT32_MIN, INT32_MAX, 0);
    SAME("%lld %lld %llu", (long long)INT64_MIN, (long long)INT64_MAX,
         (unsigned long long)UINT64_MAX);
    SAME("%llx %#llx %llo %#llo", ~0ull, ~0ull, ~0ull, ~0ull);
    SAME("%.0d %.0u %.0x %.0o %#.0o %#x %#o", 0, 0, 0, 0, 0, 0, 0);
    SAME("%p", (void *)0x1234abcd);
    SAME("%250d", 1);
    SAME("%.250d", 1);
    SAME("%hhd %hhu %hd %hu %zu %ld %lu", (signed char)-1, (unsigned char)255,
         (short)-1, (unsigned short)65535, (size_t)-1, -1l, -1ul);
}

static void longer_than_any_buffer(void **state UNUSED)
{
    char four[4];
    assert_int_equal(format(four, sizeof(four), "%70000d", 1), 65535);
    assert_string_equal(four, "   ");
    assert_int_equal(format(four, sizeof(four), "%*d", 100000, 1), 100000);
}

static void unknown_is_shown(void **state UNUSED)
{
    const char *odd[] = { "%y", "%5.3q!", "%", "%-08l", "%ll" };
    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        format(ours, ROOM, odd[i], 1);
        assert_string_equal(ours, odd[i]);
    }
}

static u64 random_value(void)
{
    u64 v = random_u64() >> random_below(64);
    return random_below(4) == 0 ? -v : v;
}

static void put_random_spec(char *fmt, const char *flags, const char *sizes[],
                            u32 size_count, const char *letters, u32 *size)
{
    char *p = fmt;
    *p++ = '%';
    for (; *flags != '\0'; flags++) {
        if (random_below(3) == 0)
            *p++ = *flags;
    }
    if (random_below(2))
        p += sprintf(p, "%u", 1 + random_below(40));
    if (random_below(2))
        p += sprintf(p, ".%u", random_below(40));
    *size = random_below(size_count);
    p += sprintf(p, "%s", sizes[*size]);
    *p++ = letters[random_below(strlen(letters))];
    *p = '\0';
}

// Random format strings.
static void random_conversions(void **state UNUSED)
{
    static const char *sizes[] = { "hh", "h", "", "l", "ll", "z" };
    char fmt[64];
    u32 size;

    for (int i = 0; i < 20000; i++) {
        u64 value = random_value();
        bool is_signed = random_below(2);
        put_random_spec(fmt, is_signed ? "-+ 0" : "-0#", sizes, 6,
                        is_signed ? "di" : (random_below(4) ? "xXo" : "u"),
                        &size);
        if (fmt[strlen(fmt) - 1] == 'u') { // # is undefined for u
            for (char *p = fmt; *p != '\0'; p++)
                *p = *p == '#' ? '-' : *p;
        }
        if (size < 3)
            SAME(fmt, (int)value);
        else
            SAME(fmt, value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text),
        cmocka_unit_test(strings),
        cmocka_unit_test(extremes),
        cmocka_unit_test(longer_than_any_buffer),
        cmocka_unit_test(unknown_is_shown),
        cmocka_unit_test(random_conversions),
    };
    random_init();
    return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
