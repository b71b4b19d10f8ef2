// arch/i386/cpu/arithmetic.c against the host's own division: edges, and random
// numbers of every length.
// link: arch/i386/cpu/arithmetic.c
#include "arch/i386/cpu/arithmetic.h"
#include "test.h"

#define RANDOM_ROUNDS 200000

static const u64 edges[] = {
    0,
    1,
    2,
    3,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x100000000,
    0x100000001,
    0x1ffffffff,
    0x7fffffffffffffff,
    0x8000000000000000,
    0x8000000000000001,
    0xffffffff00000000,
    0xfffffffffffffffe,
    0xffffffffffffffff,
};

// A number of random length, 0 to 64 bits, so that small ones occur too.
static u64 random_length(void)
{
    u32 bits = random_below(65);
    return bits ? random_u64() >> (64 - bits) : 0;
}

static void check(u64 n, u64 divisor)
{
    u64 rest;
    assert_true(__popcountsi2((u32)n) == __builtin_popcount((u32)n));
    if (!divisor)
        return;
    assert_true(__udivdi3(n, divisor) == n / divisor);
    assert_true(__umoddi3(n, divisor) == n % divisor);
    assert_true(__udivmoddi4(n, divisor, &rest) == n / divisor);
    assert_true(rest == n % divisor);
    s64 a = (s64)n, b = (s64)divisor, left;
    if (n == 1ull << 63 && b == -1)
        return; // the quotient does not fit
    assert_true(__divdi3(a, b) == a / b);
    assert_true(__moddi3(a, b) == a % b);
    assert_true(__divmoddi4(a, b, &left) == a / b);
    assert_true(left == a % b);
}

static void divides_the_edges(void **state UNUSED)
{
    for (u32 i = 0; i < ARRAY_SIZE(edges); i++) {
        for (u32 k = 0; k < ARRAY_SIZE(edges); k++)
            check(edges[i], edges[k]);
    }
}

static void divides_random_numbers(void **state UNUSED)
{
    for (u32 i = 0; i < RANDOM_ROUNDS; i++)
        check(random_length(), random_length());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divides_the_edges),
        cmocka_unit_test(divides_random_numbers),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
