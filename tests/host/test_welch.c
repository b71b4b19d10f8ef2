// Welch's t test against known values.
//
// link: user/libprofile/welch.c
#include "test.h"

#include <math.h>

#include "user/libprofile/welch.h"

static void assert_near(double value, double known, double allowed)
{
    if (!(fabs(value - known) <= allowed))
        fail_msg("%.12g is not %.12g", value, known);
}

// Closed forms: with one degree of freedom 1 - 2/pi atan t (Cauchy's), with two
// 1 - t / sqrt(2 + t^2), with four a polynomial in t / sqrt(4 + t^2).
static void closed_forms(void **state UNUSED)
{
    for (double t = 0; t < 200; t = t * 1.3 + 0.01) {
        assert_near(student_two_sided(t, 1), 1 - 2 / M_PI * atan(t), 1e-12);
        assert_near(student_two_sided(t, 2), 1 - t / sqrt(2 + t * t), 1e-12);
        double u = t / sqrt(4 + t * t);
        assert_near(student_two_sided(t, 4), 1 - (3 * u - u * u * u) / 2,
                    1e-12);
        assert_near(student_two_sided(-t, 4), student_two_sided(t, 4), 0);
    }
}

// With many degrees of freedom it is the normal distribution.
static void normal(void **state UNUSED)
{
    for (double t = 0; t < 6; t += 0.25)
        assert_near(student_two_sided(t, 1e6), erfc(t / sqrt(2)), 1e-6);
}

// Two-sided critical values, as in the tables of textbooks.
static void textbook(void **state UNUSED)
{
    static const struct {
        double freedom, p, t;
    } table[] = {
        { 3, 0.05, 3.182446305 },   { 5, 0.05, 2.570581836 },
        { 10, 0.01, 3.169272673 },  { 30, 0.05, 2.042272456 },
        { 10, 0.001, 4.586893859 }, { 120, 0.05, 1.979930405 },
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_near(student_two_sided(table[i].t, table[i].freedom), table[i].p,
                    1e-9);
}

// Unequal deviations; reference values by numerical integration of the density.
static void example(void **state UNUSED)
{
    static const double a[] = { 27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1,
                                21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4 };
    static const double b[] = { 27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0,
                                24.8, 20.2, 21.9, 22.1, 22.9, 30.2, 24.0 };
    struct sample_of x = sample_of(a, ARRAY_SIZE(a));
    struct sample_of y = sample_of(b, ARRAY_SIZE(b));
    struct welch w = welch_test(&x, &y);
    assert_near(x.mean, 20.82, 1e-9);
    assert_near(y.mean, 23.6066666667, 1e-9);
    assert_near(x.deviation, 2.804893682732, 1e-9);
    assert_near(y.deviation, 2.570288106882, 1e-9);
    assert_near(w.t, 2.836868635522, 1e-9);
    assert_near(w.freedom, 27.789054127701, 1e-9);
    assert_near(w.p, 0.008408092326, 1e-9);
    assert_string_equal(welch_mark(w.p), "**");
}

static void cannot_tell(void **state UNUSED)
{
    static const double values[] = { 3, 3, 4, 4 };
    struct sample_of one = sample_of(values, 1);
    struct sample_of same = sample_of(values, 2);
    struct sample_of other = sample_of(values + 2, 2);
    struct sample_of vary = sample_of(values + 1, 2);
    assert_true(isnan(welch_test(&one, &vary).p));
    assert_true(isnan(welch_test(&same, &other).p));
    assert_false(isnan(welch_test(&same, &vary).p));
    assert_string_equal(welch_mark(NAN), "");
}

static void marks(void **state UNUSED)
{
    assert_string_equal(welch_mark(0.0009), "***");
    assert_string_equal(welch_mark(0.001), "**");
    assert_string_equal(welch_mark(0.0499), "*");
    assert_string_equal(welch_mark(0.05), "");
    assert_string_equal(welch_mark(1), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms), cmocka_unit_test(normal),
        cmocka_unit_test(textbook),     cmocka_unit_test(example),
        cmocka_unit_test(cannot_tell),  cmocka_unit_test(marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
