// user/libprofile/known_threads.c: a pair of thread and program is new once.
// link: user/libprofile/known_threads.c
#include "test.h"

#include "user/libprofile/known_threads.h"

#define THREADS 1000u

static void once(void **state UNUSED)
{
    struct known_threads k = { 0 };

    for (u32 program = 1; program <= 3; program++) {
        for (u32 t = 0; t < THREADS; t++)
            assert_true(known_threads_add(&k, t * 64, program));
        for (u32 t = 0; t < THREADS; t++)
            assert_false(known_threads_add(&k, t * 64, program));
        assert_int_equal(k.count, THREADS);
    }
    // A program that the thread ran before is new again.
    assert_true(known_threads_add(&k, 64, 1));
    known_threads_free(&k);
    assert_true(known_threads_add(&k, 64, 1));
    known_threads_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(once) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
