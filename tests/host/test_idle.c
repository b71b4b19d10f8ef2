// How idle CPUs wait, by CPUID and the kernel argument idle=
// (arch/i386/cpu/idle.h).
#include "test.h"

#include "arch/i386/cpu/idle.h"

static void chosen(void **state UNUSED)
{
    static const struct {
        const char *asked;
        struct idle_cpuid id;
        enum idle_way way;
        const char *problem;
    } cases[] = {
        { NULL, { 8, 64 }, IDLE_HLT, NULL },
        { "hlt", { 8, 64 }, IDLE_HLT, NULL },
        { "mwait", { 8, 64 }, IDLE_MWAIT, NULL },
        { "mwait", { ~8u, 64 }, IDLE_HLT, "the CPU has no MONITOR and MWAIT" },
        { "mwait",
          { 8, 0x10000 },
          IDLE_HLT,
          "CPUID leaf 5 reports no range that MONITOR watches" },
        { "poll", { 0, 0 }, IDLE_POLL, NULL },
        { "", { 8, 64 }, IDLE_HLT, "hlt, mwait and poll are known" },
        { "MWAIT", { 8, 64 }, IDLE_HLT, "hlt, mwait and poll are known" },
    };
    for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *problem = "not set";
        assert_int_equal(idle_choose(&cases[i].id, cases[i].asked, &problem),
                         cases[i].way);
        if (cases[i].problem)
            assert_string_equal(problem, cases[i].problem);
        else
            assert_null(problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(chosen) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
