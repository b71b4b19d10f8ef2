// What CPUs say about their clock (arch/i386/cpu/core_clock.c), and what a
// header makes of it.
// link: user/libstrobe/core_clock.c
#include "test.h"

#include "arch/i386/cpu/core_clock.c"
#include "user/libstrobe/core_clock.h"

// One CPU. What is not set is 0; a register that is not set faults.
static struct {
    const char *vendor;
    u32 signature, features, leaf_6_eax, leaf_6_ecx, base_mhz, max_mhz;
    u32 leaves, power;
    bool has_aperf, has_misc, has_hwcr;
    u64 misc, hwcr;
} cpu;

static void model_cpuid(u32 leaf, u32 subleaf UNUSED, u32 r[4])
{
    memset(r, 0, 4 * sizeof(r[0]));
    if (leaf < LEAF_EXTENDED && leaf > cpu.leaves)
        fail_msg("leaf %x does not exist", leaf);
    switch (leaf) {
    case 0:
        r[EAX] = cpu.leaves;
        memcpy(&r[EBX], cpu.vendor, 4);
        break;
    case 1:
        r[EAX] = cpu.signature;
        r[ECX] = cpu.features;
        break;
    case 6:
        r[EAX] = cpu.leaf_6_eax;
        r[ECX] = cpu.leaf_6_ecx;
        break;
    case 0x16:
        r[EAX] = cpu.base_mhz;
        r[EBX] = cpu.max_mhz;
        break;
    case LEAF_EXTENDED:
        r[EAX] = cpu.power ? LEAF_POWER : 0;
        break;
    case LEAF_POWER:
        r[EDX] = cpu.power;
        break;
    }
}

static bool model_read(u32 msr, u64 *value)
{
    switch (msr) {
    case MSR_MISC_ENABLE:
        *value = cpu.has_misc ? cpu.misc : *value;
        return cpu.has_misc;
    case MSR_HWCR:
        *value = cpu.has_hwcr ? cpu.hwcr : *value;
        return cpu.has_hwcr;
    case MSR_APERF:
    case MSR_MPERF:
        return cpu.has_aperf;
    }
    fail_msg("no reason to read %x", msr);
    return false;
}

static const struct core_clock_io model = { model_read, model_cpuid };

static bool describe(struct strobe_core_clock *out)
{
    bool measures = core_clock_of_cpu(&model, out);
    out->idle = STROBE_IDLE_HLT;
    return measures;
}

static void text_is(const struct strobe_core_clock *c, const char *wanted)
{
    char text[CORE_CLOCK_SIZE];
    core_clock_text(text, c, 2400000000);
    assert_string_equal(text, wanted);
}

static void skylake(void)
{
    memset(&cpu, 0, sizeof(cpu));
    cpu.vendor = "Genu";
    cpu.signature = 0x506e3;
    cpu.features = LEAF_1_ECX_EST;
    cpu.leaves = 0x16;
    cpu.leaf_6_eax = LEAF_6_EAX_TURBO | 1;
    cpu.leaf_6_ecx = LEAF_6_ECX_APERF;
    cpu.has_aperf = cpu.has_misc = true;
    cpu.base_mhz = 2400;
    cpu.max_mhz = 3900;
    cpu.power = POWER_EDX_INVARIANT;
}

static void turbo_on_and_off(void **state UNUSED)
{
    struct strobe_core_clock c;
    skylake();
    assert_true(describe(&c));
    text_is(&c, "TSC 2.400 GHz, constant; base 2.400 GHz, at most 3.900 GHz; "
                "turbo on; idle by HLT (C1)");
    c.reference = 1000000;
    c.actual = 1312000;
    text_is(&c, "TSC 2.400 GHz, constant; the cores ran at 1.31 times their "
                "base rate on average (APERF/MPERF); base 2.400 GHz, at most "
                "3.900 GHz; turbo on; idle by HLT (C1)");
    cpu.leaf_6_eax = 0;
    cpu.misc = MISC_ENABLE_TURBO_OFF;
    describe(&c);
    assert_int_equal(c.turbo, STROBE_TURBO_OFF);
    cpu.misc = 0; // a CPU without turbo
    describe(&c);
    assert_int_equal(c.turbo, STROBE_TURBO_UNKNOWN);
    cpu.has_misc = false;
    describe(&c);
    assert_int_equal(c.turbo, STROBE_TURBO_UNKNOWN);
    cpu.has_aperf = false; // CPUID promises it, and the register faults
    assert_false(describe(&c));
}

static void older_intel(void **state UNUSED)
{
    static const struct {
        u32 signature;
        bool est;
        enum strobe_tsc tsc;
    } models[] = {
        { 0x6d8, true, STROBE_TSC_FOLLOWS },     // Pentium M
        { 0x6e8, true, STROBE_TSC_CONSTANT },    // Core Duo
        { 0x6f6, true, STROBE_TSC_CONSTANT },    // Core 2
        { 0x106c2, false, STROBE_TSC_CONSTANT }, // Atom
        { 0x683, false, STROBE_TSC_UNKNOWN },    // Pentium III
        { 0xf27, false, STROBE_TSC_UNKNOWN },    // Pentium 4, model 2
        { 0xf34, true, STROBE_TSC_CONSTANT },    // and 3
        { 0x543, false, STROBE_TSC_UNKNOWN },    // Pentium
    };
    struct strobe_core_clock c;
    for (u32 i = 0; i < ARRAY_SIZE(models); i++) {
        memset(&cpu, 0, sizeof(cpu));
        cpu.vendor = "Genu";
        cpu.leaves = 2;
        cpu.signature = models[i].signature;
        cpu.features = models[i].est ? LEAF_1_ECX_EST : 0;
        assert_false(describe(&c));
        assert_int_equal(c.tsc, models[i].tsc);
        assert_int_equal(c.turbo, STROBE_TURBO_UNKNOWN);
    }
    text_is(&c, "");
    c.tsc = STROBE_TSC_FOLLOWS;
    text_is(&c, "TSC 2.400 GHz, which follows the core's clock; idle by HLT "
                "(C1)");
}

static void amd(void **state UNUSED)
{
    struct strobe_core_clock c;
    memset(&cpu, 0, sizeof(cpu));
    cpu.vendor = "Auth";
    cpu.signature = 0x870f10; // Zen 2
    cpu.leaves = 0x16;
    cpu.leaf_6_eax = LEAF_6_EAX_TURBO; // Intel's bit, reserved here
    cpu.leaf_6_ecx = LEAF_6_ECX_APERF;
    cpu.base_mhz = 1; // Intel's leaf
    cpu.has_aperf = cpu.has_hwcr = true;
    cpu.power = POWER_EDX_INVARIANT | POWER_EDX_BOOST | POWER_EDX_P_STATES;
    assert_true(describe(&c));
    text_is(&c, "TSC 2.400 GHz, constant; turbo on; idle by HLT (C1)");
    cpu.hwcr = HWCR_BOOST_OFF;
    describe(&c);
    assert_int_equal(c.turbo, STROBE_TURBO_OFF);
    cpu.power = POWER_EDX_FID; // K8 with PowerNow!
    cpu.leaf_6_ecx = 0;
    assert_false(describe(&c));
    assert_int_equal(c.tsc, STROBE_TSC_FOLLOWS);
    assert_int_equal(c.turbo, STROBE_TURBO_UNKNOWN);
    cpu.power = 0;
    describe(&c);
    text_is(&c, "");
}

// QEMU's TCG with any CPU model: nothing is known.
static void emulated(void **state UNUSED)
{
    struct strobe_core_clock c;
    skylake();
    cpu.features |= LEAF_1_ECX_HYPERVISOR;
    cpu.leaf_6_eax = 4;
    cpu.leaf_6_ecx = cpu.base_mhz = cpu.max_mhz = 0;
    cpu.power = 0;
    cpu.misc = MISC_ENABLE_TURBO_OFF;
    assert_false(describe(&c));
    assert_int_equal(c.turbo, STROBE_TURBO_UNKNOWN);
    text_is(&c, "");
    cpu.power = POWER_EDX_INVARIANT; // KVM can promise this
    describe(&c);
    assert_int_equal(c.tsc, STROBE_TSC_INVARIANT);
}

static void hybrid(void **state UNUSED)
{
    struct strobe_core_clock p, e;
    skylake();
    describe(&p);
    cpu.base_mhz = 1800;
    cpu.max_mhz = 2900;
    cpu.leaf_6_eax = 0;
    describe(&e);
    struct strobe_core_clock all = e;
    core_clock_combine(&all, &p);
    assert_int_equal(all.base_mhz, 0);
    assert_int_equal(all.turbo, STROBE_TURBO_UNKNOWN);
    text_is(&all, "TSC 2.400 GHz, constant; at most 3.900 GHz; idle by HLT "
                  "(C1)");
    e = p;
    e.tsc = STROBE_TSC_UNKNOWN; // one CPU promises less
    core_clock_combine(&e, &p);
    assert_int_equal(e.tsc, STROBE_TSC_UNKNOWN);
    assert_int_equal(e.turbo, STROBE_TURBO_ON);
}

// It is said whether or not anything else is known.
static void rate_not_known(void **state UNUSED)
{
    struct strobe_core_clock c = { .tsc_error_ppm = 1000 };
    text_is(&c, "");
    c.tsc_error_ppm = 20000;
    text_is(&c, "TSC 2.400 GHz, rate +-2.0 %");
    c.tsc_error_ppm = 1000000;
    text_is(&c, "TSC 2.400 GHz, rate assumed");
    c.tsc = STROBE_TSC_CONSTANT;
    text_is(&c, "TSC 2.400 GHz, rate assumed, constant");
}

static void as_json(void **state UNUSED)
{
    struct strobe_core_clock c;
    char *text;
    size_t size;
    skylake();
    describe(&c);
    for (u32 i = 0; i < 2; i++) {
        FILE *out = open_memstream(&text, &size);
        core_clock_print_json(out, &c);
        fclose(out);
        assert_string_equal(
            text,
            i ? "  \"clock\": {\"tsc\": \"invariant\", \"turbo\": "
                "\"on\", \"idle\": \"hlt\", \"base_mhz\": 2400, "
                "\"max_mhz\": 3900, \"error_ppm\": 0, \"ratio\": 0.5000},\n"
              : "  \"clock\": {\"tsc\": \"invariant\", \"turbo\": "
                "\"on\", \"idle\": \"hlt\", \"base_mhz\": 2400, "
                "\"max_mhz\": 3900, \"error_ppm\": 0, \"ratio\": null},\n");
        free(text);
        c.actual = 5;
        c.reference = 10;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turbo_on_and_off),
        cmocka_unit_test(older_intel),
        cmocka_unit_test(amd),
        cmocka_unit_test(emulated),
        cmocka_unit_test(hybrid),
        cmocka_unit_test(rate_not_known),
        cmocka_unit_test(as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
