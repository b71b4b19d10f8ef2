// Counters that somebody else uses or has left in a state of his own, and CPUID
// leaves that make no sense, on models.
//
// link: arch/i386/pmu/detect.c arch/i386/pmu/describe.c
// link: arch/i386/pmu/models.c arch/i386/pmu/events.c
// link: arch/i386/pmu/counter.c arch/i386/pmu/overflow.c
// link: tests/host/pmu_model.c tests/host/pmu_model_registers.c
// link: tests/host/pmu_model_types.c
#include "pmu_sampled.h"

#define SELECT_NMI 0x5300c0ull // instructions, both modes, interrupt, enable
#define NO_INTERRUPT "in use by the firmware"

static void still_samples(const struct model_type *type)
{
    const char *reason = pmu_detect(&cpu, &model_io);

    if (reason || cpu.pmu.no_interrupts)
        fail_msg("%s: %s", type->name, reason ? reason : cpu.pmu.no_interrupts);
    assert_int_equal(model.status, 0);
    use_counters(on_sample);
    model.handler = on_nmi;
    model.eip = 0x1000;
    model.user = true;
    memset(samples, 0, sizeof(samples));
    unknown = 0;
    u32 n = sample("instructions:u", 1000);
    model_run(100000);
    assert_in_range(samples[n], 99, 100);
    pmu_stop(&cpu, n);
    assert_int_equal(unknown, 0);
    assert_int_equal(model.faults, 0);
}

// --- counters in use --------------------------------------------------------

// IA32_PERF_GLOBAL_INUSE: programmed, but stopped at the moment.
static void programmed_by_others(void **state UNUSED)
{
    model_init(&model_v4);
    model.select[2] = 0x0300c0;
    model.general[2] = 77;
    model.fixed_control = 0x3 << 8;
    assert_null(pmu_detect(&cpu, &model_io));
    assert_int_equal(cpu.pmu.counters, 11 | 3 << PMU_FIXED);
    assert_int_equal(cpu.pmu.taken, 4 | 4 << PMU_FIXED);
    assert_int_equal(model.select[2], 0x0300c0);
    assert_int_equal(model.general[2], 77);
    assert_int_equal(model.fixed_control, 0x300);
    assert_null(cpu.pmu.no_interrupts); // neither interrupts
    // Sampling goes on beside them, and leaves them as they are.
    use_counters(on_sample);
    model.handler = on_nmi;
    model.eip = 0x1000;
    const u64 theirs = 1ull << 34 | 1 << 2; // overflows not served yet
    u32 a = sample("instructions", 1000), b = sample("cycles", 1000);
    assert_true(a >= PMU_FIXED && b >= PMU_FIXED);
    assert_true(model_write(0x391, theirs));
    model_run(100000);
    assert_true(samples[a] > 20 && samples[b] > 20);
    assert_int_equal(model.status & theirs, theirs);
    pmu_stop(&cpu, a);
    pmu_stop(&cpu, b);
    assert_int_equal(model.fixed_control, 0x300);
    assert_int_equal(model.select[2], 0x0300c0);
    assert_int_equal(model.general[2], 77);

    // All of them.
    model_init(&model_v4);
    for (u32 n = 0; n < 4; n++)
        model.select[n] = 0x0300c0;
    model.fixed_control = 0x333;
    assert_string_equal(pmu_detect(&cpu, &model_io),
                        "all performance counters are in use by the firmware");
    // A version that has no such register: a stopped counter is free.
    model_init(&model_v2);
    model.select[1] = 0x0300c0;
    assert_null(pmu_detect(&cpu, &model_io));
    assert_int_equal(cpu.pmu.taken, 0);
    assert_int_equal(cpu.pmu.counters, 3 | 7 << PMU_FIXED);
}

static void expect_no_interrupts(const struct model_type *type)
{
    assert_null(pmu_detect(&cpu, &model_io));
    if (!cpu.pmu.no_interrupts || !strstr(cpu.pmu.no_interrupts, NO_INTERRUPT))
        fail_msg("%s: its interrupt is taken from the firmware", type->name);
}

// The interrupt of a counter that another agent uses is his: LVT PC has one
// target. What is left can count.
static void interrupt_of_others(void **state UNUSED)
{
    static const struct model_type *const all[] = {
        &model_v1, &model_v2,  &model_v4,   &model_v6,
        &model_k8, &model_zen, &model_zen4,
    };

    for (u32 i = 0; i < ARRAY_SIZE(all); i++) {
        model_init(all[i]);
        model.lvt_masked = false; // as the owner has it
        use_counters(on_sample);
        model.handler = on_nmi;
        model.select[0] = SELECT_NMI;
        model.global_control |= 1;
        expect_no_interrupts(all[i]);
        assert_int_equal(cpu.pmu.taken, 1);
        assert_int_equal(model.select[0], SELECT_NMI);
        assert_false(model.lvt_masked);
    }
    // A fixed counter: version 3 sees it run, version 4 in use.
    model_init(&model_v3);
    model.fixed_control = 0xb;
    model.global_control |= 1ull << 32;
    expect_no_interrupts(&model_v3);
    assert_int_equal(model.fixed_control, 0xb);
    assert_int_equal(model.global_control, 1ull << 32);
    model_init(&model_v5);
    model.fixed_control = 8ull << 4; // interrupt enabled, mode not yet
    expect_no_interrupts(&model_v5);
    assert_int_equal(cpu.pmu.taken, 0);
}

// Counter 3 of Skylake is the microcode's, while transactions may succeed.
static void transactions(void **state UNUSED)
{
    struct model_type type = model_v4;

    type.transactions = true;
    model_init(&type);
    still_samples(&type);
    assert_int_equal(cpu.pmu.counters, 7 | 7 << PMU_FIXED);
    assert_int_equal(cpu.pmu.taken, 8);
    assert_int_equal(model.select[3], 0);
    model_init(&type);
    model.force_abort = 1;
    still_samples(&type);
    assert_int_equal(cpu.pmu.counters, 15 | 7 << PMU_FIXED);
}

// Adaptive PEBS of another agent's fixed counter stays on, through our starts
// and stops; that of ours is not switched on.
static void adaptive_pebs_is_left_alone(void **state UNUSED)
{
    model_init(&model_v5);
    model.fixed_control = 3ull << 4 | 1ull << 36;
    assert_null(pmu_detect(&cpu, &model_io));
    assert_int_equal(cpu.pmu.counters >> PMU_FIXED, 13);
    u32 n = pmu_choose(&cpu, code_of("instructions").counters);
    struct pmu_code code = code_of("instructions");
    pmu_count_start(&cpu, n, &code);
    assert_int_equal(model.fixed_control, 3ull << 4 | 1ull << 36 | 3);
    pmu_stop(&cpu, n);
    assert_int_equal(model.fixed_control, 3ull << 4 | 1ull << 36);
}

// --- what others have left --------------------------------------------------

// The status was frozen, with overflows of counters that we shall use: before a
// reset that kept the registers (INIT), or set by a hypervisor.
static void left_frozen(void **state UNUSED)
{
    static const struct model_type *const all[] = { &model_v4, &model_v5,
                                                    &model_v6, &model_big,
                                                    &model_small };
    for (u32 i = 0; i < ARRAY_SIZE(all); i++) {
        model_init(all[i]);
        assert_true(
            model_write(0x391, 3ull << 58 | 1ull << 62 | 7ull << 32 | 0xf));
        assert_int_not_equal(model.status, 0);
        still_samples(all[i]);
    }
    model_init(&model_zen4);
    assert_true(model_write(0xc0000303, 3ull << 58 | 0x3f));
    still_samples(&model_zen4);
    model_init(&model_v2);
    model.status = 1ull << 63 | 1ull << 62 | 7ull << 32 | 3;
    still_samples(&model_v2);
}

// Freezing on each interrupt was on during the detection, too.
static void freezing_was_on(void **state UNUSED)
{
    static const struct model_type *const all[] = { &model_v2, &model_v3,
                                                    &model_v4, &model_v6,
                                                    &model_zen4 };
    for (u32 i = 0; i < ARRAY_SIZE(all); i++) {
        model_init(all[i]);
        model.debugctl = 1 << 12;
        still_samples(all[i]);
        assert_int_equal(model.debugctl, 0);
    }
}

// A CPU that cannot freeze has no such bits: writing them would fault.
static void no_freezing(void **state UNUSED)
{
    struct model_type type = model_zen4;

    type.freezes = false;
    model_init(&type);
    still_samples(&type);
    assert_int_equal(cpu.pmu.other_status, 0);
}

// --- registers that do not do what they should ------------------------------

static u32 dead_msr;

static bool write_but_one(u32 msr, u64 value)
{
    return msr == dead_msr || model_write(msr, value);
}

static bool read_but_one(u32 msr, u64 *value)
{
    if (msr != dead_msr)
        return model_read(msr, value);
    *value = 0;
    return true;
}

static void set_but_one(u64 value, u32 msr)
{
    write_but_one(msr, value);
}

static u64 get_but_one(u32 msr)
{
    u64 value = 0;

    read_but_one(msr, &value);
    return value;
}

// The status does not show overflows, or cannot be acknowledged.
static void dead_status(void **state UNUSED)
{
    struct pmu_io io = model_io;

    io.write = write_but_one;
    io.set = set_but_one;
    dead_msr = 0x390;
    model_init(&model_v4);
    assert_null(pmu_detect(&cpu, &io));
    assert_non_null(strstr(cpu.pmu.no_interrupts, "status does not work"));
    io = model_io;
    io.read = read_but_one;
    io.get = get_but_one;
    dead_msr = 0x38e;
    model_init(&model_v4);
    assert_null(pmu_detect(&cpu, &io));
    assert_non_null(strstr(cpu.pmu.no_interrupts, "status does not work"));
    dead_msr = 0xc0000300;
    model_init(&model_zen4);
    assert_null(pmu_detect(&cpu, &io));
    assert_non_null(strstr(cpu.pmu.no_interrupts, "status does not work"));
}

// Version 6 without the registers from 1900H on: eight counters have others.
static void old_numbers(void **state UNUSED)
{
    struct model_type type = model_v6_big;

    type.old_numbers = true;
    model_init(&type);
    assert_null(pmu_detect(&cpu, &model_io));
    assert_int_equal(cpu.pmu.counters, 0xff | 15 << PMU_FIXED);
    assert_int_equal(cpu.pmu.counter[7].select, 0x18d);
    assert_int_equal(model.faults, 2); // one read of each range
}

// --- CPUID ------------------------------------------------------------------

static u32 lie_leaf, lie_subleaf, lie[4];

static void lying_cpuid(u32 leaf, u32 subleaf, u32 r[4])
{
    model_cpuid(leaf, subleaf, r);
    if (leaf == lie_leaf && (leaf != 0x23 || subleaf == lie_subleaf))
        memcpy(r, lie, sizeof(lie));
}

static u32 written_outside;

// Registers of counters and their control; anything else may be a register of
// another kind.
static bool of_counters(u32 msr)
{
    return msr - 0xc1 < 8 || msr - 0x186 < 8 || msr - 0x4c1 < 8 ||
           msr - 0x309 < 4 || (msr >= 0x38d && msr <= 0x390) ||
           msr - 0x1900 < 64 || msr - 0x1980 < 16 || msr - 0xc0010000 < 8 ||
           msr - 0xc0010200 < 32 || msr - 0xc0000300 < 3;
}

static bool watched_write(u32 msr, u64 value)
{
    written_outside += !of_counters(msr);
    return model_write(msr, value);
}

static void watched_set(u64 value, u32 msr)
{
    watched_write(msr, value);
}

static void detect_lie(const struct model_type *type)
{
    struct pmu_io io = model_io;

    io.cpuid = lying_cpuid;
    io.write = watched_write;
    io.set = watched_set;
    model_init(type);
    const char *reason = pmu_detect(&cpu, &io);
    u32 real = model_general_mask() | ((1u << MIN(type->fixed, 4u)) - 1)
                                          << PMU_FIXED;
    assert_int_equal(written_outside, 0);
    if (reason)
        return;
    // Only counters that exist, none running, and they work.
    assert_int_equal(cpu.pmu.counters & ~real, 0);
    assert_int_not_equal(cpu.pmu.counters, 0);
    assert_int_equal(cpu.enabled, 0);
    for (u32 n = 0; n < MODEL_GENERAL; n++)
        assert_int_equal(model.select[n], 0);
    assert_int_equal(model.fixed_control, 0);
    struct pmu_event e = { .id = PMU_CYCLES, .user = true, .kernel = true };
    struct pmu_code code;
    if (pmu_encode(&cpu.pmu, &e, &code))
        return;
    u32 n = pmu_choose(&cpu, code.counters);
    pmu_count_start(&cpu, n, &code);
    model_run(1000);
    assert_true(pmu_read(&cpu.pmu, n) >= 1000);
    pmu_stop(&cpu, n);
}

static void one_lie(const struct model_type *type, u32 leaf, u32 subleaf,
                    const u32 value[4])
{
    lie_leaf = leaf;
    lie_subleaf = subleaf;
    memcpy(lie, value, sizeof(lie));
    detect_lie(type);
}

static u32 odd_word(void)
{
    static const u32 odd[] = { 0, 1, 0x80000000, 0xffffffff, 0x7fffffff };
    return random_below(2)
               ? odd[random_below(ARRAY_SIZE(odd))]
               : random_below(1u << 16) << 16 | random_below(1u << 16);
}

static void hostile_cpuid(void **state UNUSED)
{
    static const u32 leaves[][2] = {
        { 0, 0 },          { 1, 0 },          { 7, 0 },          { 0xa, 0 },
        { 0x1a, 0 },       { 0x23, 0 },       { 0x23, 1 },       { 0x23, 3 },
        { 0x80000000, 0 }, { 0x80000001, 0 }, { 0x80000022, 0 },
    };
    for (u32 round = 0; round < 400; round++) {
        for (u32 i = 0; i < ARRAY_SIZE(leaves); i++) {
            u32 value[4] = { odd_word(), odd_word(), odd_word(), odd_word() };
            if (i == 0) // the maker is what it is
                model_cpuid(0, 0, value), value[0] = odd_word();
            one_lie(types[random_below(ARRAY_SIZE(types))], leaves[i][0],
                    leaves[i][1], value);
        }
    }
}

// Sixteen counters, where there are numbers for eight: the ninth's would be
// those of other registers.
static void more_than_there_are(void **state UNUSED)
{
    u32 value[4] = { 4 | 16 << 8 | 48 << 16 | 8u << 24, 0, 0, 31 | 48 << 5 };

    one_lie(&model_v4, 0xa, 0, value);
    assert_int_equal(cpu.pmu.counters, 15 | 7 << PMU_FIXED);
    // Fixed counters with a wrong width (early Core 2): only these are left
    // out.
    u32 early[4] = { 2 | 2 << 8 | 40 << 16 | 7u << 24, 0, 0, 3 };
    one_lie(&model_v2, 0xa, 0, early);
    assert_int_equal(cpu.pmu.counters, 3);
    // PerfMonV2 with no counter, and with fifteen.
    u32 none[4] = { 1, 0, 0, 0 }, fifteen[4] = { 1, 15, 0, 0 };
    one_lie(&model_zen4, 0x80000022, 0, none);
    assert_int_equal(cpu.pmu.counters, 0);
    one_lie(&model_zen4, 0x80000022, 0, fifteen);
    assert_int_equal(cpu.pmu.counters, 63);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programmed_by_others),
        cmocka_unit_test(interrupt_of_others),
        cmocka_unit_test(transactions),
        cmocka_unit_test(adaptive_pebs_is_left_alone),
        cmocka_unit_test(left_frozen),
        cmocka_unit_test(freezing_was_on),
        cmocka_unit_test(no_freezing),
        cmocka_unit_test(dead_status),
        cmocka_unit_test(old_numbers),
        cmocka_unit_test(hostile_cpuid),
        cmocka_unit_test(more_than_there_are),
    };

    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
