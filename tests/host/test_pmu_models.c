// Events by CPU model, on models of these CPUs: each name counts what it says,
// on the counters that can, and hybrid processors say which core lacks it.
//
// link: arch/i386/pmu/detect.c arch/i386/pmu/describe.c
// link: arch/i386/pmu/models.c arch/i386/pmu/events.c
// link: arch/i386/pmu/counter.c arch/i386/pmu/overflow.c
// link: tests/host/pmu_model.c tests/host/pmu_model_registers.c
// link: tests/host/pmu_model_types.c
#include "pmu_sampled.h"

static struct pmu_event event_of(const char *text)
{
    struct pmu_event e;

    assert_int_equal(pmu_event_parse(text, &e), 0);
    return e;
}

static const char *why_not(const char *text)
{
    struct pmu_event e = event_of(text);
    struct pmu_code code;

    return pmu_encode(&cpu.pmu, &e, &code);
}

// --- which model ------------------------------------------------------------

static void is(u32 family, u32 number, u32 core, const char *name)
{
    struct model_type type = family == 6 ? model_v4 : model_zen;

    type.family = family;
    type.model = number;
    type.core_type = core;
    model_init(&type);
    assert_null(pmu_detect(&cpu, &model_io));
    if (strcmp(pmu_model_name(&cpu.pmu), name) != 0)
        fail_msg("%x.%x: %s, not %s", family, number, pmu_model_name(&cpu.pmu),
                 name);
}

static void model_numbers(void **state UNUSED)
{
    is(6, 0x4e, 0, "Skylake");
    is(6, 0x55, 0, "Skylake");
    is(6, 0x9e, 0, "Skylake");
    is(6, 0xa6, 0, "Skylake");
    is(6, 0x7e, 0, "Ice Lake");
    is(6, 0x8c, 0, "Ice Lake");
    is(6, 0x8f, 0, "Golden Cove");
    is(6, 0xaf, 0, "Crestmont");
    is(6, 0xbe, 0, "Gracemont");
    // Each core of a hybrid processor is of its own kind.
    is(6, 0x9a, 0x40, "Golden Cove");
    is(6, 0x9a, 0x20, "Gracemont");
    is(6, 0xb7, 0x20, "Gracemont");
    is(6, 0xaa, 0x40, "Golden Cove");
    is(6, 0xaa, 0x20, "Crestmont");
    is(6, 0x97, 0, "Golden Cove"); // its efficiency cores are off
    is(6, 0xaa, 0x80, "Golden Cove");
    is(0x17, 0x31, 0, "Zen 2");
    is(0x17, 0x71, 0, "Zen 2");
    is(0x19, 0x01, 0, "Zen 3");
    is(0x19, 0x50, 0, "Zen 3");
    is(0x19, 0x11, 0, "Zen 4");
    is(0x19, 0x61, 0, "Zen 4");
    is(6, 0x3c, 0, "unknown");
    is(6, 0xbd, 0x40, "unknown");
    is(0x17, 0x01, 0, "unknown");
    is(0x1a, 0x44, 0, "unknown");
}

// --- what is counted --------------------------------------------------------

static const struct expected {
    const char *name;
    u32 divisor; // steps per event of the models
} of_models[] = {
    { "bus-cycles", 2 },
    { "slots", 1 },
    { "stalled-cycles-frontend", 9 },
    { "stalled-cycles-backend", 8 },
    { "L1-dcache-loads", 3 },
    { "L1-dcache-load-misses", 20 },
    { "L1-dcache-stores", 7 },
    { "L1-icache-load-misses", 40 },
    { "LLC-loads", 30 },
    { "LLC-load-misses", 60 },
    { "dTLB-load-misses", 70 },
    { "dTLB-store-misses", 90 },
    { "iTLB-load-misses", 110 },
};

static void count_one(const struct model_type *type, const struct expected *e)
{
    struct pmu_code code = code_of(e->name);

    // Each of the counters that the code allows really counts it.
    for (u32 left = code.counters; left; left &= left - 1) {
        u32 n = (u32)__builtin_ctz(left);
        pmu_count_start(&cpu, n, &code);
        model_run(110 * 1000);
        u64 value = pmu_read(&cpu.pmu, n), due = 110 * 1000 / e->divisor;
        pmu_stop(&cpu, n);
        if (value < due - 1 || value > due + 30)
            fail_msg("%s: %s: %llu in counter %u, not %llu", type->name,
                     e->name, (unsigned long long)value, n,
                     (unsigned long long)due);
    }
}

// Bit i of `lacks`: of_models[i] is missing on this CPU.
static void counts(const struct model_type *type, u32 lacks)
{
    begin(type);
    for (u32 i = 0; i < ARRAY_SIZE(of_models); i++) {
        const char *reason = why_not(of_models[i].name);
        if ((reason != NULL) != (lacks >> i & 1))
            fail_msg("%s: %s: %s", type->name, of_models[i].name, reason);
        if (!reason)
            count_one(type, &of_models[i]);
        else if (cpu.pmu.model != PMU_MODEL_UNKNOWN)
            assert_non_null(strstr(reason, of_models[i].name));
        else if (i > 1)
            assert_non_null(strstr(reason, "only the common events"));
    }
    assert_int_equal(model.faults, 0);
    assert_int_equal(pmu_event_count(&cpu.pmu) +
                         (u32)__builtin_popcount(lacks) +
                         (why_not("ref-cycles") != NULL),
                     PMU_RAW);
}

#define SLOTS (1u << 1)
#define STALLS (3u << 2)
#define BACKEND (1u << 3)
#define ZEN_LACKS (3u | BACKEND | 1u << 11)
#define OF_MODELS 0x1ffcu

static void events_of_models(void **state UNUSED)
{
    counts(&model_v3, SLOTS | OF_MODELS); // unknown: the common events
    counts(&model_v4, SLOTS);
    counts(&model_v5, 0);
    counts(&model_big, 0);
    counts(&model_small, SLOTS | STALLS);
    counts(&model_v6, SLOTS | STALLS);
    counts(&model_v6_big, OF_MODELS);
    counts(&model_zen, 3 | OF_MODELS);
    counts(&model_zen2, ZEN_LACKS);
    counts(&model_zen3, ZEN_LACKS);
    counts(&model_zen4, ZEN_LACKS);
    counts(&model_f15, 3 | OF_MODELS);
}

static void names_are_parsed(void **state UNUSED)
{
    for (u32 id = 0; id < PMU_RAW; id++) {
        char text[32];
        snprintf(text, sizeof(text), "%s:u", pmu_event_name(id));
        struct pmu_event e = event_of(text);
        assert_int_equal(e.id, id);
        assert_true(e.user && !e.kernel);
    }
}

// --- which counters ---------------------------------------------------------

// The fixed counters take what they can, so that the general ones are left for
// the others: on Tiger Lake 12 events fit.
static void fixed_first(void **state UNUSED)
{
    static const char *const events[] = {
        "cycles",          "instructions",     "ref-cycles",
        "slots",           "cache-references", "cache-misses",
        "branches",        "branch-misses",    "L1-dcache-loads",
        "LLC-load-misses", "iTLB-load-misses", "dTLB-load-misses",
    };

    begin(&model_v5);
    for (u32 i = 0; i < ARRAY_SIZE(events); i++) {
        struct pmu_code code = code_of(events[i]);
        u32 n = pmu_choose(&cpu, code.counters);
        assert_int_not_equal(n, PMU_NONE);
        assert_int_equal(n >= PMU_FIXED, i < 4);
        pmu_count_start(&cpu, n, &code);
    }
    assert_int_equal(__builtin_popcount(cpu.enabled), 12);
    // A second one of these goes to a general counter, if one is free.
    pmu_stop(&cpu, 7);
    assert_int_equal(pmu_choose(&cpu, code_of("cycles").counters), 7);
}

// Slots interrupt as all do, from their fixed counter.
static void slots_are_sampled(void **state UNUSED)
{
    begin(&model_v5);
    model.user = true;
    u32 n = sample("slots:u", 1000);
    assert_int_equal(n, PMU_FIXED + 3);
    model_run(1000 * 100 + 10);
    assert_int_equal(samples[n], 100);
    pmu_stop(&cpu, n);
    assert_int_equal(unknown, 0);
}

// --- hybrid processors ------------------------------------------------------

static struct pmu_cpu pair[2];

static const char *lacks(const struct model_type *a, const struct model_type *b,
                         const char *text)
{
    struct pmu_event e = event_of(text);

    begin(a);
    pair[0] = cpu;
    begin(b);
    pair[1] = cpu;
    struct pmu_cpu *both[2] = { &pair[0], &pair[1] };
    return pmu_lacks(both, 2, &e);
}

static void which_core_lacks_it(void **state UNUSED)
{
    struct model_type other = model_small;

    assert_null(lacks(&model_big, &model_small, "cycles"));
    assert_null(lacks(&model_big, &model_small, "LLC-load-misses"));
    assert_string_equal(lacks(&model_big, &model_small, "slots"),
                        "the efficiency cores do not count it");
    assert_string_equal(lacks(&model_small, &model_big, "slots"),
                        "the efficiency cores do not count it");
    other.core_type = 0x40;
    other.model = 0xaa;
    other.missing = 1 << 6; // not what any CPU has
    assert_string_equal(lacks(&other, &model_small, "branch-misses"),
                        "the performance cores do not count it");
    // No core counts it.
    assert_string_equal(lacks(&model_small, &model_small, "slots"),
                        "this CPU does not count slots");
    // Different CPUs that are not hybrid.
    assert_string_equal(lacks(&model_v5, &model_v4, "slots"),
                        "this CPU does not count slots");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_numbers),
        cmocka_unit_test(events_of_models),
        cmocka_unit_test(names_are_parsed),
        cmocka_unit_test(fixed_first),
        cmocka_unit_test(slots_are_sampled),
        cmocka_unit_test(which_core_lacks_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
