// Which clocks are believed when they measure the TSC.
// link: arch/i386/clock/calibration_vote.c arch/i386/clock/stated_rates.c
#include "test.h"

#include "arch/i386/clock/stated_rates.h"

#define GHZ 1000000000ull

static u32 chosen;
static struct vote v[VOTERS_MAX];

static enum verdict vote(u64 a, u64 b, u64 c, u64 rtc)
{
    v[0] = (struct vote){ a, 20, false };
    v[1] = (struct vote){ b, 200, false };
    v[2] = (struct vote){ c, 900, false };
    chosen = ~0u;
    return calibration_vote(v, c ? 3 : b ? 2 : 1, rtc, &chosen);
}

static void good_clocks_agree(void **state UNUSED)
{
    assert_int_equal(vote(GHZ, GHZ + 2000000, GHZ - 3000000, 0), VOTE_AGREED);
    assert_int_equal(chosen, 0);
    for (u32 i = 0; i < 3; i++)
        assert_false(v[i].outvoted);
}

static void the_odd_one_is_outvoted(void **state UNUSED)
{
    assert_int_equal(vote(GHZ, GHZ, GHZ / 255, 0), VOTE_AGREED);
    assert_int_equal(chosen, 0);
    assert_true(v[2].outvoted && !v[0].outvoted && !v[1].outvoted);
    assert_int_equal(vote(GHZ / 255, GHZ, GHZ, 0), VOTE_AGREED);
    assert_int_equal(chosen, 1);
    assert_true(v[0].outvoted && !v[1].outvoted && !v[2].outvoted);
}

// Two that differ: the RTC decides, and its reading is coarse.
static void the_rtc_decides(void **state UNUSED)
{
    assert_int_equal(vote(GHZ, 2 * GHZ, 0, 0), VOTE_OPEN);
    assert_false(v[0].outvoted || v[1].outvoted);
    assert_int_equal(vote(GHZ, 2 * GHZ, 0, 2 * GHZ + 20000000), VOTE_AGREED);
    assert_int_equal(chosen, 1);
    assert_true(v[0].outvoted && !v[1].outvoted);
    assert_int_equal(vote(GHZ, 2 * GHZ, 0, 3 * GHZ), VOTE_OPEN);
    assert_int_equal(vote(GHZ, 2 * GHZ, 4 * GHZ, GHZ), VOTE_AGREED);
    assert_true(chosen == 0 && v[1].outvoted && v[2].outvoted);
}

// v86 without ACPI, before the read-back command was tried: 3.9 MHz.
static void one_must_be_plausible(void **state UNUSED)
{
    assert_int_equal(vote(GHZ, 0, 0, 0), VOTE_ALONE);
    assert_int_equal(chosen, 0);
    assert_int_equal(vote(3915678, 0, 0, 0), VOTE_OPEN);
    assert_int_equal(vote(3915678, 0, 0, GHZ), VOTE_OPEN);
    assert_int_equal(vote(20000000, 0, 0, 20000000), VOTE_AGREED);
    assert_int_equal(vote(TSC_HZ_MAX + 1, 0, 0, 0), VOTE_OPEN);
    assert_int_equal(vote(0, 0, 0, 0), VOTE_OPEN);
}

// A clock that did not measure has no vote, and uncertain ones much room.
static void uncertain_clocks(void **state UNUSED)
{
    assert_int_equal(vote(0, GHZ, 0, 0), VOTE_ALONE);
    assert_int_equal(chosen, 1);
    assert_int_equal(vote(0, GHZ, GHZ, 0), VOTE_AGREED);
    assert_true(chosen == 1 && !v[0].outvoted);
    v[0] = (struct vote){ GHZ, 20, false };
    v[1] = (struct vote){ GHZ * 5 / 4, 300000, false };
    assert_int_equal(calibration_vote(v, 2, 0, &chosen), VOTE_AGREED);
}

// --- stated rates

static struct {
    u32 leaves, ratio[3], base_mhz;               // CPUID 0, 15H, 16H
    u32 hypervisor, interface, features, tsc_khz; // 40000000H and on
    u64 msr_hz;
    bool hidden; // no bit of CPUID 1 says that there is a hypervisor
} pc;

static void model_cpuid(u32 leaf, u32 subleaf UNUSED, u32 r[4])
{
    memset(r, 0, 16);
    switch (leaf) {
    case 0:
        r[0] = pc.leaves;
        break;
    case 1:
        r[2] = pc.hypervisor && !pc.hidden ? 1u << 31 : 0;
        break;
    case 0x15:
        memcpy(r, pc.ratio, sizeof(pc.ratio));
        break;
    case 0x16:
        r[0] = pc.base_mhz;
        break;
    case 0x40000000:
        r[0] = pc.hypervisor;
        break;
    case 0x40000001:
        r[0] = pc.interface;
        break;
    case 0x40000003:
        r[0] = pc.features;
        break;
    case 0x40000010:
        r[0] = pc.tsc_khz;
        break;
    default:
        fail_msg("no reason to read leaf %x", leaf);
    }
}

static bool model_read(u32 msr, u64 *value)
{
    assert_int_equal(msr, 0x40000022);
    if (pc.msr_hz)
        *value = pc.msr_hz;
    return pc.msr_hz;
}

static const struct core_clock_io io = { model_read, model_cpuid };

static struct vote stated(u32 by)
{
    struct vote votes[STATED_RATES];
    stated_rates(&io, votes);
    return votes[by];
}

static struct vote by_cpuid(u32 denominator, u32 numerator, u32 crystal_hz,
                            u32 base_mhz)
{
    memset(&pc, 0, sizeof(pc));
    pc.leaves = 0x16;
    pc.ratio[0] = denominator;
    pc.ratio[1] = numerator;
    pc.ratio[2] = crystal_hz;
    pc.base_mhz = base_mhz;
    assert_int_equal(stated(1).tsc_hz, 0);
    return stated(0);
}

// Alder Lake; Skylake, which does not name its crystal; nothing, or nonsense.
static void cpuid_has_a_vote(void **state UNUSED)
{
    struct vote by = by_cpuid(2, 188, 38400000, 3600);
    assert_true(by.tsc_hz == 3609600000ull && by.error_ppm == 100);
    by = by_cpuid(2, 284, 0, 3400);
    assert_true(by.tsc_hz == 3400000000ull && by.error_ppm == 10000);
    assert_int_equal(by_cpuid(0, 188, 38400000, 0).tsc_hz, 0);
    assert_int_equal(by_cpuid(2, 0, 38400000, 3600).tsc_hz, 0);
    assert_int_equal(by_cpuid(2, 188, 0, 0).tsc_hz, 0);
    assert_int_equal(by_cpuid(1, ~0u, ~0u, ~0u).tsc_hz, 0);
    pc.leaves = 0x14;
    assert_int_equal(stated(0).tsc_hz, 0);
    v[0] = (struct vote){ 3401000000ull, 20, false };
    v[1] = by_cpuid(2, 284, 0, 3400);
    assert_int_equal(calibration_vote(v, 2, 0, &chosen), VOTE_AGREED);
    assert_int_equal(chosen, 0);
    v[0].tsc_hz = 1700500000;
    assert_int_equal(calibration_vote(v, 2, 0, &chosen), VOTE_OPEN);
    assert_int_equal(calibration_vote(v, 2, 1710000000, &chosen), VOTE_AGREED);
    assert_true(chosen == 0 && v[1].outvoted);
}

// KVM or VMware with its leaf, without it, Hyper-V; QEMU's TCG; no hypervisor:
// real processors answer unknown leaves with the last one that they have.
static void a_hypervisor_has_a_vote(void **state UNUSED)
{
    memset(&pc, 0, sizeof(pc));
    assert_int_equal(stated(1).tsc_hz, 0);
    pc.hypervisor = 0x40000010;
    pc.tsc_khz = 2445410;
    assert_int_equal(stated(1).tsc_hz, 2445410000);
    pc.hidden = true;
    assert_int_equal(stated(1).tsc_hz, 0);
    pc.hidden = false;
    pc.hypervisor = 0x80000010;
    assert_int_equal(stated(1).tsc_hz, 0);
    pc.hypervisor = 0x40000001;
    assert_int_equal(stated(1).tsc_hz, 0);
    pc.hypervisor = 0x4000000b;
    pc.interface = 0x31237648;
    pc.features = 1u << 11;
    pc.msr_hz = 2893211000;
    assert_int_equal(stated(1).tsc_hz, 2893211000);
    pc.features = 0;
    assert_int_equal(stated(1).tsc_hz, 0);
    pc.features = 1u << 11;
    pc.msr_hz = 0;
    assert_int_equal(stated(1).tsc_hz, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_clocks_agree),
        cmocka_unit_test(the_odd_one_is_outvoted),
        cmocka_unit_test(the_rtc_decides),
        cmocka_unit_test(one_must_be_plausible),
        cmocka_unit_test(uncertain_clocks),
        cmocka_unit_test(cpuid_has_a_vote),
        cmocka_unit_test(a_hypervisor_has_a_vote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
