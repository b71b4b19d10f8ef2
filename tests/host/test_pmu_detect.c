// Detection of the counters and their events, on models of real CPUs and of
// CPUs that report counters which do not work.
// link: arch/i386/pmu/detect.c arch/i386/pmu/describe.c
// link: arch/i386/pmu/models.c arch/i386/pmu/events.c
// link: arch/i386/pmu/counter.c arch/i386/pmu/overflow.c
// link: tests/host/pmu_model.c tests/host/pmu_model_registers.c
// link: tests/host/pmu_model_types.c
#include "test.h"

#include "pmu_model.h"

static struct pmu_cpu cpu;

static const char *detect(const struct model_type *type)
{
    model_init(type);
    return pmu_detect(&cpu, &model_io);
}

static void found(const struct model_type *type, u32 general, u32 fixed)
{
    const char *why_not = detect(type);

    if (why_not)
        fail_msg("%s: %s", type->name, why_not);
    assert_int_equal(cpu.pmu.counters, general | fixed << PMU_FIXED);
    for (u32 n = 0; n < PMU_COUNTERS; n++) {
        if (cpu.pmu.counters & 1u << n)
            assert_int_equal(cpu.pmu.counter[n].width, type->width);
    }
    // No counter is left running.
    assert_int_equal(cpu.enabled, 0);
    for (u32 n = 0; n < 16; n++)
        assert_int_equal(model.select[n], 0);
    assert_int_equal(model.fixed_control, 0);
    assert_true(model.lvt_masked);
    assert_int_equal(model.nmis, 0);
    assert_int_equal(model.status, 0);
    assert_null(cpu.pmu.no_interrupts);
    assert_int_equal(cpu.pmu.taken, 0);
}

static void families(void **state UNUSED)
{
    found(&model_p6, 3, 0);
    assert_int_equal(model.faults, 0);
    found(&model_v1, 3, 0);
    found(&model_v2, 3, 7);
    assert_int_equal(model.faults, 0);
    found(&model_v3, 15, 7);
    assert_int_equal(model.faults, 0);
    found(&model_v4, 15, 7);
    assert_int_equal(model.faults, 0);
    found(&model_v5, 255, 15);
    assert_int_equal(model.faults, 0);
    found(&model_big, 255, 15);
    assert_int_equal(model.faults, 0);
    found(&model_small, 63, 7);
    assert_int_equal(model.faults, 0);
    found(&model_v6, 255, 7);
    assert_int_equal(model.faults, 0);
    found(&model_v6_big, 0x2ff, 15); // nine, as leaf 23H says
    assert_int_equal(model.faults, 0);
    found(&model_k7, 15, 0);
    found(&model_k8, 15, 0);
    found(&model_f15, 63, 0);
    found(&model_zen, 63, 0);
    assert_int_equal(model.faults, 0);
    found(&model_zen2, 63, 0);
    assert_int_equal(model.faults, 0);
    found(&model_zen3, 63, 0);
    assert_int_equal(model.faults, 0);
    found(&model_zen4, 63, 0);
    assert_int_equal(model.faults, 0);
}

// Family 16h: the extended registers, but four counters only.
static void some_are_missing(void **state UNUSED)
{
    struct model_type type = model_f15;

    type.family = 0x16;
    type.general = 4;
    found(&type, 15, 0);
}

// Fixed-function counters that cannot be loaded are not used.
static bool (*honest_write)(u32 msr, u64 value);
static bool forgetful_write(u32 msr, u64 value)
{
    return msr == 0x30a || honest_write(msr, value);
}

static void each_is_tried(void **state UNUSED)
{
    struct pmu_io io = model_io;

    honest_write = io.write;
    io.write = forgetful_write;
    model_init(&model_v4);
    assert_null(pmu_detect(&cpu, &io));
    assert_int_equal(cpu.pmu.counters, 15 | 5 << PMU_FIXED);
}

static void expect_reason(const struct model_type *type, enum model_lie lie,
                          const char *what)
{
    model_init(type);
    model.lie = lie;
    const char *why_not = pmu_detect(&cpu, &model_io);
    assert_non_null(why_not);
    if (!strstr(why_not, what))
        fail_msg("%s: \"%s\" does not say \"%s\"", type->name, why_not, what);
}

// Bochs faults, or (ignore_bad_msrs) reads 0; TCG reads 0.
static void liars(void **state UNUSED)
{
    expect_reason(&model_v2, LIE_FAULT, "CPUID promises");
    expect_reason(&model_v4, LIE_FAULT, "registers fault");
    expect_reason(&model_v4, LIE_ZERO, "CPUID promises");
    expect_reason(&model_v4, LIE_ZERO, "ignore writes");
    expect_reason(&model_k8, LIE_ZERO, "no performance counters:");
    expect_reason(&model_p6, LIE_ZERO, "no performance counters:");
    expect_reason(&model_zen4, LIE_FAULT, "registers fault");
    expect_reason(&model_v1, LIE_STILL, "do not count");
    expect_reason(&model_v4, LIE_STILL, "do not count");
    expect_reason(&model_zen, LIE_STILL, "do not count");
}

static void no_pmu(void **state UNUSED)
{
    struct model_type type = model_v2;

    type.version = 0; // TCG: leaf 0AH is all zero
    type.general = 0;
    expect_reason(&type, LIE_NONE, "no performance counters (CPUID");
    type = model_p6;
    type.family = 15;
    expect_reason(&type, LIE_NONE, "Pentium 4");
    type.family = 5;
    expect_reason(&type, LIE_NONE, "Pentium");
    type = model_v4;
    type.width = 0;
    expect_reason(&type, LIE_NONE, "inconsistent");
}

// Counters that already run belong to the firmware, and are left unchanged.
static void taken(void **state UNUSED)
{
    model_init(&model_v2);
    model.select[1] = 0x5300c0;
    model.general[1] = 1234;
    model.fixed_control = 0x3 << 4;
    model.global_control = 0x200000003;
    assert_null(pmu_detect(&cpu, &model_io));
    assert_int_equal(cpu.pmu.counters, 1 | 5 << PMU_FIXED);
    assert_int_equal(model.select[1], 0x5300c0);
    assert_int_equal(model.fixed_control, 0x30);
    assert_int_equal(model.global_control, 0x200000002);
    assert_true(model.general[1] > 1234 && model.general[1] < 1000000);

    model_init(&model_k8);
    for (u32 n = 0; n < 4; n++)
        model.select[n] = 0x430076;
    assert_string_equal(pmu_detect(&cpu, &model_io),
                        "all performance counters are in use by the firmware");
    // P6: the enable bit of the first counter enables both.
    model_init(&model_p6);
    model.select[0] = 0x430079;
    assert_non_null(pmu_detect(&cpu, &model_io));
    assert_int_equal(model.select[0], 0x430079);
}

// --- events -----------------------------------------------------------------

static const struct {
    const char *name;
    u32 divisor; // steps per event of the model
} events[] = {
    { "cycles", 1 },           { "instructions", 1 },  { "ref-cycles", 1 },
    { "cache-references", 4 }, { "cache-misses", 16 }, { "branches", 5 },
    { "branch-misses", 50 },
};

// The count of an event in 60,000 user steps and 40,000 kernel steps.
static u64 count(const char *text, const char **why_not)
{
    struct pmu_event e;
    struct pmu_code code;

    assert_int_equal(pmu_event_parse(text, &e), 0);
    *why_not = pmu_encode(&cpu.pmu, &e, &code);
    if (*why_not)
        return 0;
    model.access_cost = 0;
    u32 n = pmu_choose(&cpu, code.counters);
    assert_true(n < PMU_COUNTERS && code.counters & 1u << n);
    pmu_count_start(&cpu, n, &code);
    model.user = true;
    model_run(60000);
    model.user = false;
    model_run(40000);
    model.halted = true; // a halted CPU counts nothing
    model_run(50000);
    model.halted = false;
    u64 value = pmu_read(&cpu.pmu, n);
    pmu_stop(&cpu, n);
    return value;
}

static void counted(const struct model_type *type)
{
    bool no_ref_cycles = type == &model_p6 || type == &model_k8 ||
                         type == &model_zen || type == &model_f15 ||
                         type == &model_k7;
    assert_null(detect(type));
    model.faults = 0;
    for (u32 i = 0; i < ARRAY_SIZE(events); i++) {
        char text[40];
        const char *why_not;
        u32 divisor = events[i].divisor;
        bool missing =
            (no_ref_cycles && i == 2) || (type == &model_v1 && i == 6);
        if (type == &model_v1 && i == 2)
            divisor = 2; // only the slower clock has an event
        u64 all = count(events[i].name, &why_not);
        assert_int_equal(why_not != NULL, missing);
        if (missing) {
            assert_non_null(strstr(why_not, events[i].name));
            continue;
        }
        assert_in_range(all, 100000 / divisor - 1, 100000 / divisor + 1);
        snprintf(text, sizeof(text), "%s:u", events[i].name);
        u64 user = count(text, &why_not);
        assert_in_range(user, 60000 / divisor - 1, 60000 / divisor + 1);
        snprintf(text, sizeof(text), "%s:k", events[i].name);
        u64 kernel = count(text, &why_not);
        assert_in_range(kernel, 40000 / divisor - 1, 40000 / divisor + 1);
        snprintf(text, sizeof(text), "%s:k:u", events[i].name);
        u64 both = count(text, &why_not);
        assert_in_range(both, 100000 / divisor - 1, 100000 / divisor + 1);
    }
    assert_int_equal(model.faults, 0);
}

static void events_of_all(void **state UNUSED)
{
    counted(&model_p6);
    counted(&model_v1);
    counted(&model_v2);
    counted(&model_v4);
    counted(&model_v5);
    counted(&model_k7);
    counted(&model_k8);
    counted(&model_f15);
    counted(&model_zen);
    counted(&model_zen4);
}

static void raw_events(void **state UNUSED)
{
    const char *why_not;

    detect(&model_v2);
    assert_in_range(count("rc400:u", &why_not), 11999, 12001);
    assert_in_range(count("r2E4F", &why_not), 24999, 25001);
    count("r0c400", &why_not);
    assert_null(why_not);
    count("r12001", &why_not); // only AMD's event numbers have 12 bits
    assert_non_null(why_not);
    detect(&model_zen4);
    assert_in_range(count("r12001", &why_not), 99999, 100001);
    detect(&model_k8);
    count("r12001", &why_not);
    assert_non_null(strstr(why_not, "two digits"));
}

static void nothing_is_left(void **state UNUSED)
{
    struct pmu_event e = { .id = PMU_CACHE_MISSES, .user = true };
    struct pmu_code code;

    detect(&model_f15);
    assert_null(pmu_encode(&cpu.pmu, &e, &code));
    assert_int_equal(code.counters, 7);
    cpu.pmu.counters = 0x38; // the firmware uses the first three
    assert_non_null(pmu_encode(&cpu.pmu, &e, &code));
}

static void names(void **state UNUSED)
{
    static const char *const bad[] = {
        "",         "cycle",      "cyclesx",   "cycles:",
        "cycles:x", "cycles:u:u", "cycles:uk", ":u",
        "r",        "rc0",        "rc0000000", "rc4zz",
        "xc400",    "cycles:u ",  "rc400:",    "instructions:k:",
        "r-c40",
    };
    struct pmu_event e = { .select = 7 }, was = e;

    for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
        if (!pmu_event_parse(bad[i], &e))
            fail_msg("\"%s\" was taken for an event", bad[i]);
    }
    assert_memory_equal(&e, &was, sizeof(e));
    assert_int_equal(pmu_event_parse("rA1b2:k", &e), 0);
    assert_int_equal(e.id, PMU_RAW);
    assert_int_equal(e.select, 0xa1);
    assert_int_equal(e.mask, 0xb2);
    assert_true(e.kernel && !e.user);
    assert_int_equal(pmu_event_parse("r1A1b2", &e), 0);
    assert_int_equal(e.select, 0x1a1);
    assert_true(e.kernel && e.user);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families),        cmocka_unit_test(some_are_missing),
        cmocka_unit_test(each_is_tried),   cmocka_unit_test(liars),
        cmocka_unit_test(no_pmu),          cmocka_unit_test(taken),
        cmocka_unit_test(events_of_all),   cmocka_unit_test(raw_events),
        cmocka_unit_test(nothing_is_left), cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
