// Shares are of what samples stand for: a program whose CPU was taken away, so
// that its few samples stand for many ticks, has its part of the time.
// link: user/libprofile/mapping.c user/libprofile/images_read.c
// link: user/libprofile/samples.c user/libprofile/stream.c
// link: user/libprofile/chains.c user/libprofile/images.c
// link: user/libprofile/programs.c user/libprofile/views.c
// link: user/libprofile/tree.c user/libprofile/user_chain.c
#include "user/libprofile/views.h" // before cmocka, which has a fail(), too

#include "test.h"

static void sample(struct samples *s, u32 thread, u32 pc, u64 period)
{
    // Its one pc lies where C would pad it.
    struct sprofile_sample r = {
        .head = { SPROFILE_R_SAMPLE, sizeof(r), 0, 0, 1 },
        .task = 5,
        .thread = thread,
        .period = period,
        .user_depth = 1,
    };
    memcpy((char *)&r + offsetof(struct sprofile_sample, pc), &pc, sizeof(pc));
    samples_add_stream(s, &r, sizeof(r));
}

static void *no_file(const char *path UNUSED, size_t *size)
{
    *size = 0;
    return NULL;
}

static struct samples samples;

static void fill(void)
{
    struct program p = { .task = 5, .name = "x" };
    assert_int_equal(samples_init(&samples, no_file), 0);
    p.image = images_add(&samples.images, "/bin/x", NULL, 0);
    programs_add(&samples.programs, &p);
    for (u32 i = 0; i < 6; i++)
        sample(&samples, 7, 0x1000, 10);
    for (u32 i = 0; i < 2; i++)
        sample(&samples, 8, 0x2000, 60);
}

static void of_rows(void **state UNUSED)
{
    static const struct view_filter all;
    static const enum view_by keys[] = { BY_THREAD, BY_ADDRESS };
    struct view v;

    for (u32 i = 0; i < 2; i++) {
        assert_int_equal(view_make(&v, &samples, keys[i], &all), 0);
        assert_int_equal(v.period, 180);
        assert_int_equal(v.mode_periods[MODE_USER], 180);
        // Fewer samples, and more of the time.
        assert_int_equal(v.rows[0].self, 2);
        assert_int_equal(v.rows[0].self_period, 120);
        assert_int_equal(v.rows[0].total_period, 120);
        assert_int_equal(v.rows[1].self, 6);
        assert_int_equal(v.rows[1].self_period, 60);
        view_free(&v);
    }
}

static void of_trees(void **state UNUSED)
{
    static const struct view_filter all;
    struct view v;
    struct tree t;

    assert_int_equal(view_make(&v, &samples, BY_ADDRESS, &all), 0);
    assert_int_equal(tree_make(&t, &v, &samples, &all, false), 0);
    assert_int_equal(t.nodes[0].total_period, 180);
    const struct tree_node *first = &t.nodes[t.nodes[0].first];
    assert_int_equal(first->total, 2);
    assert_int_equal(first->self_period, 120);
    assert_int_equal(t.nodes[first->next].total_period, 60);
    tree_free(&t);
    view_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_rows),
        cmocka_unit_test(of_trees),
    };

    fill();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    samples_free(&samples);
    return failed;
}
