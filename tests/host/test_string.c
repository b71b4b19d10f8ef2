// lib/string.c against the host's functions; Strobe's are renamed.
#include "test.h"

#include "lib/string.h"

#define memcpy our_memcpy
#define memmove our_memmove
#define memset our_memset
#define memcmp our_memcmp
#define memchr our_memchr
#define strlen our_strlen
#define strnlen our_strnlen
#define strcmp our_strcmp
#define strncmp our_strncmp
#define strchr our_strchr
#define strrchr our_strrchr
#define strstr our_strstr
#define strlcpy our_strlcpy
#include "lib/string.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef memchr
#undef strlen
#undef strnlen
#undef strcmp
#undef strncmp
#undef strchr
#undef strrchr
#undef strstr
#undef strlcpy

#define SIZE 80

static u8 ours[SIZE], theirs[SIZE], source[SIZE];

static void fill(u8 *bytes, u32 size, u32 alphabet)
{
    for (u32 i = 0; i < size; i++)
        bytes[i] = random_below(alphabet);
}

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

// Every alignment and length up to a few words; other bytes do not change.
static void copying(void **state UNUSED)
{
    for (u32 to = 0; to < 8; to++) {
        for (u32 from = 0; from < 8; from++) {
            for (u32 n = 0; n < SIZE - 8; n++) {
                fill(source, SIZE, 256);
                fill(ours, SIZE, 256);
                memcpy(theirs, ours, SIZE);
                assert_ptr_equal(our_memcpy(ours + to, source + from, n),
                                 ours + to);
                memcpy(theirs + to, source + from, n);
                assert_memory_equal(ours, theirs, SIZE);
            }
        }
    }
}

static void moving(void **state UNUSED)
{
    for (u32 to = 0; to < 24; to++) {
        for (u32 from = 0; from < 24; from++) {
            for (u32 n = 0; n < SIZE - 24; n++) {
                fill(ours, SIZE, 256);
                memcpy(theirs, ours, SIZE);
                assert_ptr_equal(our_memmove(ours + to, ours + from, n),
                                 ours + to);
                memmove(theirs + to, theirs + from, n);
                assert_memory_equal(ours, theirs, SIZE);
            }
        }
    }
}

static void setting(void **state UNUSED)
{
    for (u32 to = 0; to < 8; to++) {
        for (u32 n = 0; n < SIZE - 8; n++) {
            int c = (int)random_u64(); // only its low byte counts
            fill(ours, SIZE, 256);
            memcpy(theirs, ours, SIZE);
            assert_ptr_equal(our_memset(ours + to, c, n), ours + to);
            memset(theirs + to, c, n);
            assert_memory_equal(ours, theirs, SIZE);
        }
    }
}

static void comparing(void **state UNUSED)
{
    for (int i = 0; i < 100000; i++) {
        u32 n = random_below(20), a = random_below(8), b = random_below(8);
        fill(ours, SIZE, 256);
        memcpy(theirs + b, ours + a, n);
        if (n > 0 && random_below(2))
            theirs[b + random_below(n)] = random_below(256);
        assert_int_equal(sign(our_memcmp(ours + a, theirs + b, n)),
                         sign(memcmp(ours + a, theirs + b, n)));
    }
}

// Strings over three letters, so that all cases are frequent, each in memory of
// the exact size: ASan detects a read beyond it.
static char *random_string(u32 size)
{
    char *s = malloc(size + 1);
    for (u32 i = 0; i < size; i++)
        s[i] = "ab\xff"[random_below(3)];
    s[size] = '\0';
    return s;
}

static void searching(void **state UNUSED)
{
    for (int i = 0; i < 50000; i++) {
        u32 size = random_below(24);
        char *s = random_string(size);
        _Alignas(8) char what[8] = { 0 }; // strstr measures it by words
        for (u32 j = random_below(4); j > 0; j--)
            what[j - 1] = "ab\xff"[random_below(3)];
        int c = "ab\xff"
                "c"[random_below(5)];
        assert_int_equal(our_strnlen(s, size / 2), strnlen(s, size / 2));
        assert_int_equal(our_strnlen(s, size + 9), size);
        assert_ptr_equal(our_strchr(s, c), strchr(s, c));
        assert_ptr_equal(our_strrchr(s, c), strrchr(s, c));
        assert_ptr_equal(our_strstr(s, what), strstr(s, what));
        assert_ptr_equal(our_memchr(s, c, size), memchr(s, c, size));
        free(s);
    }
}

static void comparing_strings(void **state UNUSED)
{
    for (int i = 0; i < 50000; i++) {
        char *a = random_string(random_below(6));
        char *b = random_string(random_below(6));
        u32 n = random_below(8);
        assert_int_equal(sign(our_strcmp(a, b)), sign(strcmp(a, b)));
        assert_int_equal(sign(our_strncmp(a, b, n)), sign(strncmp(a, b, n)));
        free(a);
        free(b);
    }
}

// strlen reads whole aligned words, so its strings are in larger memory.
static void measuring(void **state UNUSED)
{
    _Alignas(8) char s[SIZE];
    for (u32 at = 0; at < 8; at++) {
        for (u32 n = 0; n < SIZE - 16; n++) {
            memset(s, 0xff, SIZE);
            s[at + n] = '\0';
            if (at > 0)
                s[at - 1] = '\0';
            assert_int_equal(our_strlen(s + at), n);
            memset(s + at, 0x01, n);
            assert_int_equal(our_strlen(s + at), n);
            memset(s + at, 0x80, n);
            assert_int_equal(our_strlen(s + at), n);
        }
    }
}

static void copying_strings(void **state UNUSED)
{
    for (u32 size = 0; size < 8; size++) {
        for (u32 n = 0; n < 10; n++) {
            char *dst = malloc(size + 1);
            _Alignas(8) char src[16] = "abcdefghijklmno";
            src[n] = '\0';
            memset(dst, 'X', size + 1);
            assert_int_equal(our_strlcpy(dst, src, size), n);
            assert_int_equal(dst[size], 'X');
            if (size > 0) {
                u32 fits = MIN(n, size - 1);
                assert_memory_equal(dst, src, fits);
                assert_int_equal(dst[fits], '\0');
            }
            free(dst);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copying),   cmocka_unit_test(moving),
        cmocka_unit_test(setting),   cmocka_unit_test(comparing),
        cmocka_unit_test(searching), cmocka_unit_test(comparing_strings),
        cmocka_unit_test(measuring), cmocka_unit_test(copying_strings),
    };
    random_init();
    return cmocka_run_group_tests_name("string", tests, NULL, NULL);
}
