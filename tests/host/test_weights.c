// Shares of time are by the weights of samples: a program whose CPU was taken
// away has its part of the time, although few samples stand for its many ticks.
// Within it, shares of functions are by the number of samples, as chance
// decides which of them stand for many ticks.
// link: user/libprofile/shares.c user/libprofile/mapping.c
// link: user/libprofile/images_read.c
// link: user/libprofile/samples.c user/libprofile/stream.c
// link: user/libprofile/chains.c user/libprofile/images.c
// link: user/libprofile/programs.c user/libprofile/views.c
// link: user/libprofile/tree.c user/libprofile/user_chain.c
// link: user/libprofile/task_times.c
#include "user/libprofile/shares.h" // before cmocka, which has a fail(), too
#include "user/libprofile/views.h"

#include <math.h>

#include "test.h"

static void sample(struct samples *s, u32 thread, u32 pc, u64 period)
{
    // Its one pc is in the padding at the end of the structure.
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
        // Fewer samples, but more time.
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

// --- late ticks -------------------------------------------------------------

#define DRAWS 300

static struct samples many;

static void begin(void)
{
    struct program p = { .task = 5, .name = "x" };
    assert_int_equal(samples_init(&many, no_file), 0);
    p.image = images_add(&many.images, "/bin/x", NULL, 0);
    programs_add(&many.programs, &p);
}

static struct sprofile_info late(const char *source)
{
    struct sprofile_info i = { .rate_hz = 1000, .missed = 1 };
    strcpy(i.source, source);
    return i;
}

// The share of the time at `pc`, in per cent.
static double share(u32 pc)
{
    static const struct view_filter all;
    struct view v;
    double p = 0;
    assert_int_equal(view_make(&v, &many, BY_ADDRESS, &all), 0);
    for (u32 i = 0; i < v.count; i++)
        p += v.rows[i].address == pc ? 100.0 * v.rows[i].self_period / v.period
                                     : 0;
    view_free(&v);
    return p;
}

// 50 : 25 : 25; one sample in ten stands for up to 20 ticks, as if the host had
// stopped the machine.
static void draw(u32 samples)
{
    static const u32 pcs[] = { 0x1000, 0x1000, 0x2000, 0x3000 };
    for (u32 i = 0; i < samples; i++)
        sample(&many, 7, pcs[random_below(4)],
               random_below(10) ? 1000 : 1000 * (1 + random_below(20)));
}

static void less_error(void **state UNUSED)
{
    struct sprofile_info info = late("nmi-hpet");
    double by_weight = 0, even = 0, bound;
    for (u32 n = 0; n < DRAWS; n++) {
        begin();
        draw(400);
        struct shares h = shares_of(&many, 0);
        assert_true(h.samples == 400 && h.effective < 250);
        double p = share(0x1000);
        by_weight += (p - 50) * (p - 50) / DRAWS;
        u64 period = many.period;
        shares_even(&many, 0, &info);
        p = share(0x1000);
        even += (p - 50) * (p - 50) / DRAWS;
        assert_true(many.period == period);
        h = shares_of(&many, 0);
        bound = shares_points(&h, 50);
        samples_free(&many);
    }
    by_weight = sqrt(by_weight);
    even = sqrt(even);
    print_message("# rms error by weight %.2f points, evened %.2f; reported "
                  "95 %% bound %.2f\n",
                  by_weight, even, bound);
    assert_true(even < 0.75 * by_weight);
    // The bound is at least 1.96 standard deviations, to four standard errors.
    assert_true(1.96 * even / bound - 1 < 4 / sqrt(2.0 * DRAWS));
}

// The host runs the machine for moments that are shorter than the functions: a
// late tick and the few after it sample the same function, and are as good as
// one sample.
static void moments(void **state UNUSED)
{
    static const u32 pcs[] = { 0x1000, 0x1000, 0x2000, 0x3000 };
    struct sprofile_info info = late("nmi-hpet");
    double error = 0, bound;
    for (u32 n = 0; n < DRAWS; n++) {
        begin();
        for (u32 moment = 0; moment < 160; moment++) {
            u32 pc = pcs[random_below(4)];
            sample(&many, 7, pc, 20000);
            for (u32 i = random_below(2); i < 2; i++)
                sample(&many, 7, pc, 1000);
        }
        shares_even(&many, 0, &info);
        double p = share(0x1000);
        error += (p - 50) * (p - 50) / DRAWS;
        struct shares h = shares_of(&many, 0);
        bound = shares_points(&h, 50);
        samples_free(&many);
    }
    print_message("# rms error %.2f points, reported 95 %% bound %.2f\n",
                  sqrt(error), bound);
    // Although the samples after a late tick make it a tenth larger.
    assert_true(1.96 * sqrt(error) / bound - 1.1 < 4 / sqrt(2.0 * DRAWS));
}

// Samples of one moment: of all CPUs, where the source interrupts all at once.
static void at_once(void **state UNUSED)
{
    static struct sample_count counts[] = {
        { .samples = 1, .thread = 1, .cpu = 0 },
        { .samples = 1, .thread = 1, .cpu = 1 },
        { .samples = 1, .thread = 1, .cpu = 2, .event = 1 },
        { .samples = 1, .thread = 0, .cpu = 3, .mode = MODE_IDLE },
        { .samples = 1, .thread = 2, .cpu = 1 },
    };
    struct samples s = { .counts = counts, .count = 4 };
    struct sprofile_info info = { .source = "nmi-hpet", .random = 1 };

    assert_int_equal(shares_together(&s, 0, &info), 1); // one thread moved
    s.count = 5;
    assert_int_equal(shares_together(&s, 0, &info), 2);
    assert_int_equal(shares_together(&s, 1, &info), 1);
    strcpy(info.source, "lapic"); // each CPU has its own random distances
    assert_int_equal(shares_together(&s, 0, &info), 1);
    info.random = 0;
    assert_int_equal(shares_together(&s, 0, &info), 2);
    strcpy(info.event, "cycles");
    assert_int_equal(shares_together(&s, 0, &info), 1);
}

// A kernel sample keeps its weight if its tick is late because interrupts were
// off. The sums of each thread, mode and CPU do not change.
static void only_chance(void **state UNUSED)
{
    static const struct {
        const char *source;
        u64 of_section;
    } cases[] = { { "lapic", 9 }, { "nmi-ipi", 9 }, { "nmi-hpet", 5 } };
    static const struct {
        u32 pc, thread, mode;
        u64 period;
    } taken[] = {
        { 0x10, 7, MODE_USER, 1 },   { 0x20, 7, MODE_USER, 7 },
        { 0x30, 7, MODE_KERNEL, 1 }, { 0x40, 7, MODE_KERNEL, 9 },
        { 0x50, 8, MODE_USER, 30 },
    };
    for (u32 n = 0; n < 3; n++) {
        struct sprofile_info info = late(cases[n].source);
        begin();
        struct sample_count c = { .task = 5, .samples = 1 };
        for (u32 i = 0; i < 5; i++) {
            c.thread = taken[i].thread;
            c.mode = (u8)taken[i].mode;
            c.period = taken[i].period;
            c.chain = chains_add(&many.chains, CHAIN_ROOT,
                                 (struct place){ IMAGE_KERNEL, taken[i].pc });
            samples_count(&many, &c);
        }
        for (u32 twice = 0; twice < 2; twice++) {
            shares_even(&many, 0, &info);
            assert_int_equal(many.counts[0].period, 4);
            assert_int_equal(many.counts[1].period, 4);
            assert_int_equal(many.counts[3].period, cases[n].of_section);
            assert_int_equal(many.counts[2].period, 10 - cases[n].of_section);
            assert_int_equal(many.counts[4].period, 30);
        }
        samples_free(&many);
    }
}

// Counts of events are exact, and keep their weights.
static void not_events(void **state UNUSED)
{
    struct sprofile_info info = late("pmc");
    strcpy(info.event, "cycles");
    begin();
    sample(&many, 7, 0x1000, 1);
    sample(&many, 7, 0x2000, 3);
    shares_even(&many, 0, &info);
    assert_true(share(0x2000) == 75);
    samples_free(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_rows),    cmocka_unit_test(of_trees),
        cmocka_unit_test(less_error), cmocka_unit_test(only_chance),
        cmocka_unit_test(not_events), cmocka_unit_test(moments),
        cmocka_unit_test(at_once),
    };

    fill();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    samples_free(&samples);
    return failed;
}
