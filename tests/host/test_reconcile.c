// Samples reconciled with a trace: what is removed, and the statistical model,
// by samples drawn from known shares.
//
// link: user/libprofile/binomial.c
// link: user/libprofile/reconcile.c user/libprofile/functions.c
// link: user/libprofile/samples.c user/libprofile/stream.c
// link: user/libprofile/user_chain.c user/libprofile/chains.c
// link: user/libprofile/images.c user/libprofile/images_read.c
// link: user/libprofile/mapping.c user/libprofile/programs.c
// link: user/libstrobe/table.c
// link: user/libprofile/task_times.c
#define _GNU_SOURCE
#include "test.h"

#include <math.h>

#include "user/libprofile/reconcile.h"

// Traced functions, each of 256 bytes, one behind the other.
#define FUNCTIONS 20u
#define FIRST 0xc0101000u
#define BYTES 256u
#define FUNCTION(n) (FIRST + (n)*BYTES)
// Code without a site.
#define STUB 0xc0201000u
#define COPY 0xc0202000u
#define ENTRY 0xc0203000u

static struct samples samples;
static struct functions functions;
static struct reconciliation result;

static void *read_kernel(const char *path, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);

    assert_string_equal(path, "[kernel]");
    for (u32 i = 0; i < FUNCTIONS; i++)
        fprintf(out, "%08x T f%u\n", FUNCTION(i), i);
    fprintf(out, "%08x T trace_exit\n%08x T copy\n%08x T entry\n", STUB, COPY,
            ENTRY);
    fprintf(out, "%08x T end\n", ENTRY + BYTES);
    fclose(out);
    return text;
}

static int setup(void **state UNUSED)
{
    char text[FUNCTIONS * 40], *at = text;

    for (u32 i = 0; i < FUNCTIONS; i++)
        at += sprintf(at, "%08x %u f%u kernel/a.c\n", FUNCTION(i), BYTES, i);
    assert_null(functions_read(&functions, text, (size_t)(at - text)));
    return samples_init(&samples, read_kernel);
}

static int teardown(void **state UNUSED)
{
    reconciliation_free(&result);
    functions_free(&functions);
    samples_free(&samples);
    return 0;
}

// A chain of `depth` addresses, innermost first.
static void add(u32 mode, u64 count, const u32 *chain, u32 depth)
{
    struct sample_count c = { .mode = (u8)mode, .samples = count };

    for (u32 i = depth; i--;)
        c.chain = chains_add(&samples.chains, c.chain,
                             (struct place){ IMAGE_KERNEL, chain[i] });
    samples_count(&samples, &c);
}
#define ADD(mode, count, ...)                      \
    add(mode, count, (const u32[]){ __VA_ARGS__ }, \
        sizeof((const u32[]){ __VA_ARGS__ }) / sizeof(u32))

// A trace in which function n took own[n].
static void reconcile_with(const u64 *own)
{
    static struct call_path list[FUNCTIONS + 2];
    struct call_paths paths = { .list = list, .count = FUNCTIONS + 2 };

    list[0] = (struct call_path){ .function = CALLS_ROOT_THREADS, .own = 777 };
    list[1] = (struct call_path){ .function = CALLS_ROOT_INTERRUPTS,
                                  .parent = 1,
                                  .own = 888 };
    for (u32 i = 0; i < FUNCTIONS; i++)
        list[2 + i] = (struct call_path){ .function = FUNCTION(i),
                                          .calls = own[i] / 10,
                                          .own = own[i] };
    reconciliation_free(&result);
    assert_true(reconcile(&result, &samples, &functions, &paths));
}

static const struct reconciled_row *row(u32 function)
{
    for (u32 i = 0; i < result.count; i++) {
        if (result.rows[i].function == function)
            return &result.rows[i];
    }
    fail_msg("no row for %x", function);
    return NULL;
}

// --- what is compared -------------------------------------------------------

static void removes_what_only_one_sees(void **state UNUSED)
{
    u64 own[FUNCTIONS] = { 600, 400 };

    ADD(MODE_USER, 50, 0x08049000);
    ADD(MODE_IDLE, 60, ENTRY);
    ADD(MODE_IRQ, 5, FUNCTION(3) + 8, ENTRY);
    ADD(MODE_KERNEL, 3, ENTRY);                        // no function
    ADD(MODE_KERNEL, 7, STUB + 4, FUNCTION(0) + 20);   // a stub
    ADD(MODE_KERNEL, 9, FUNCTION(1), FUNCTION(0) + 9); // the call of one
    ADD(MODE_KERNEL, 11, FUNCTION(1) + 5, FUNCTION(0) + 9);
    ADD(MODE_KERNEL, 13, COPY + 3, FUNCTION(0) + 30, FUNCTION(2) + 7);
    ADD(MODE_KERNEL, 15, FUNCTION(0) + 6);
    reconcile_with(own);
    assert_int_equal(result.user, 50);
    assert_int_equal(result.idle, 60);
    assert_int_equal(result.kernel, 5 + 3 + 7 + 9 + 11 + 13 + 15);
    assert_int_equal(result.interrupts, 5);
    assert_int_equal(result.outside, 3);
    assert_int_equal(result.stubs, 7);
    assert_int_equal(result.compared, 9 + 11 + 13 + 15);
    assert_int_equal(result.own, 1000);
    assert_int_equal(row(FUNCTION(0))->samples, 13 + 15);
    assert_int_equal(row(FUNCTION(0))->in, 15);
    assert_int_equal(row(FUNCTION(1))->samples, 9 + 11);
    assert_int_equal(row(FUNCTION(1))->in, 9 + 11);
    assert_int_equal(row(FUNCTION(2))->samples, 0);
    assert_false(row(COPY)->traced);
    assert_int_equal(row(COPY)->in, 13);
    assert_int_equal(result.judged, 2);
    assert_float_equal(reconciled_traced(&result, row(FUNCTION(0))), 0.6, 0);
}

static void small_functions_are_one(void **state UNUSED)
{
    u64 own[FUNCTIONS] = { 9000, 820, 99, 81 };

    ADD(MODE_KERNEL, 900, FUNCTION(0) + 6);
    ADD(MODE_KERNEL, 82, FUNCTION(1) + 6);
    ADD(MODE_KERNEL, 10, FUNCTION(2) + 6);
    ADD(MODE_KERNEL, 8, FUNCTION(3) + 6);
    reconcile_with(own);
    assert_true(reconciled_judged(&result, row(FUNCTION(1))));
    assert_false(reconciled_judged(&result, row(FUNCTION(2))));
    assert_int_equal(result.others.samples, 18);
    assert_int_equal(result.others.own, 180);
    assert_int_equal(result.judged, 3); // the others as one
    assert_int_equal(result.agreeing, 3);
    assert_true(result.agree);
}

static void nothing_is_no_agreement_by_chance(void **state UNUSED)
{
    u64 none[FUNCTIONS] = { 0 }, one[FUNCTIONS] = { 10 };

    reconcile_with(none);
    assert_int_equal(result.judged, 0);
    ADD(MODE_KERNEL, 1, FUNCTION(1) + 6);
    reconcile_with(one); // samples where there is no time
    assert_true(isinf(reconciled_sigmas(&result, row(FUNCTION(1)))));
    assert_false(result.agree);
}

// --- the model --------------------------------------------------------------

// 20 functions, the shares of which are as 1 to 20.
#define SHARES (FUNCTIONS * (FUNCTIONS + 1) / 2)
#define DRAWN 4000u

static void draw(const u64 *own, u64 sum)
{
    u64 found[FUNCTIONS] = { 0 };

    for (u32 i = 0; i < DRAWN; i++) {
        u64 at = random_u64() % sum;
        u32 n = 0;
        for (; at >= own[n]; n++)
            at -= own[n];
        found[n]++;
    }
    samples_clear(&samples);
    for (u32 n = 0; n < FUNCTIONS; n++) {
        if (found[n])
            ADD(MODE_KERNEL, found[n], FUNCTION(n) + 6);
    }
}

static u64 make_shares(u64 *own)
{
    for (u32 n = 0; n < FUNCTIONS; n++)
        own[n] = (n + 1) * 1000;
    return SHARES * 1000;
}

#define RUNS 1000u

// In right runs the differences are normally distributed: of 1 standard
// deviation, with as many beyond 3 and outside of the 95 % interval as there
// should be, and as many runs are taken for wrong as is said, or fewer. Each
// limit is wrong by chance less often than once in 10^9 runs (6.1 standard
// deviations of what is counted).
static void right_shares_agree(void **state UNUSED)
{
    u64 own[FUNCTIONS], sum = make_shares(own);
    double squares = 0;
    u32 beyond = 0, outside = 0, judged = 0, differ = 0;

    for (u32 i = 0; i < RUNS; i++) {
        draw(own, sum);
        reconcile_with(own);
        differ += !result.agree;
        beyond += result.judged - result.agreeing;
        for (u32 n = 0; n < result.count; n++) {
            const struct reconciled_row *r = &result.rows[n];
            if (!reconciled_judged(&result, r))
                continue;
            struct interval in = reconciled_interval(&result, r);
            double share = reconciled_traced(&result, r);
            double sigmas = reconciled_sigmas(&result, r);
            bool is_outside = share < in.low || share > in.high;
            assert_true(is_outside == (fabs(sigmas) > 1.959964));
            outside += is_outside;
            squares += pow(sigmas, 2);
            judged++;
        }
    }
    assert_true(judged == RUNS * 18); // two have less than 1 %
    double runs = judged;
    assert_float_equal(squares / runs, 1, 6.1 * sqrt(2 / runs) + 0.01);
    assert_float_equal(outside / runs, 0.05,
                       6.1 * sqrt(0.05 * 0.95 / runs) + 0.005);
    assert_true(beyond / runs < 0.0027 + 6.1 * sqrt(0.0027 / runs) + 0.001);
    assert_true(differ <= 14); // of 1,000, with 1 expected
}

// A twentieth of all time is charged to another function: that is found in
// every run, as 10 and 15 standard deviations.
static void a_wrong_share_is_found(void **state UNUSED)
{
    u64 own[FUNCTIONS], wrong[FUNCTIONS], sum = make_shares(own);

    memcpy(wrong, own, sizeof(own));
    wrong[19] -= sum / 20;
    wrong[9] += sum / 20;
    for (u32 i = 0; i < 100; i++) {
        draw(own, sum);
        reconcile_with(wrong);
        assert_false(result.agree);
        assert_true(result.judged - result.agreeing >= 2);
    }
}

// The chance by its definition: a sum over all numbers of samples that differ
// as much on that side. The probability of each is from the one before it.
static double chance_of(u32 k, u32 n, double share)
{
    double p = pow(1 - share, n), at_most = 0, at_least = 0;

    for (u32 i = 0; i <= n; i++) {
        if (i <= k)
            at_most += p;
        if (i >= k)
            at_least += p;
        p *= (n - i) / (i + 1.0) * share / (1 - share);
    }
    return fmin(1, 2 * fmin(at_most, at_least));
}

static void chances_are_binomial(void **state UNUSED)
{
    static const u32 shares[] = { 10, 20, 500, 990 }; // thousandths
    for (u32 i = 0; i < ARRAY_SIZE(shares); i++) {
        u64 own[FUNCTIONS] = { shares[i], 1000 - shares[i] };
        for (u32 k = 0; k <= 100; k++) {
            samples_clear(&samples);
            if (k)
                ADD(MODE_KERNEL, k, FUNCTION(0) + 6);
            if (k < 100)
                ADD(MODE_KERNEL, 100 - k, FUNCTION(1) + 6);
            reconcile_with(own);
            double right = chance_of(k, 100, shares[i] / 1000.0);
            double found = reconciled_chance(&result, row(FUNCTION(0)));
            assert_true(fabs(found - right) <= 1e-9 * right + 1e-13);
            // Of the two functions, which have the same chance.
            assert_true(fabs(result.chance - fmin(1, 2 * right)) <=
                        2e-9 * right + 2e-13);
            assert_true(result.agree == (result.chance >= RECONCILED_CHANCE));
        }
    }
}

// An interval is between 0 and 1, also of no samples, and of all.
static void intervals_have_a_width(void **state UNUSED)
{
    u64 own[FUNCTIONS] = { 1, 1 };

    ADD(MODE_KERNEL, 100, FUNCTION(0) + 6);
    reconcile_with(own);
    struct interval all = reconciled_interval(&result, row(FUNCTION(0)));
    struct interval none = reconciled_interval(&result, row(FUNCTION(1)));
    assert_float_equal(none.low, 0, 1e-12);
    assert_float_equal(none.high, 0.036993, 1e-6); // z*z / (n + z*z)
    assert_float_equal(all.low, 1 - none.high, 1e-12);
    assert_float_equal(all.high, 1, 1e-12);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(removes_what_only_one_sees, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(small_functions_are_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nothing_is_no_agreement_by_chance,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(right_shares_agree, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wrong_share_is_found, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(chances_are_binomial, setup, teardown),
        cmocka_unit_test_setup_teardown(intervals_have_a_width, setup,
                                        teardown),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
