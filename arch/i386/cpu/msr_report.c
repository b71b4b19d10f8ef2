// hardware.msrs, hardware.mtrrs: the model-specific registers that say how the
// machine is set up (SDM vol. 4, chapter 2; AMD64 APM vol. 2, appendix A). A
// register that the CPU lacks raises #GP, which is caught: "not there".
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/msr.h"
#include "arch/i386/cpu/mtrr.h"
#include "kernel/base/providers.h"
#include "kernel/mm/chain.h"
#include "kernel/mm/heap.h"
#include "lib/string.h"

#define CPUID_1_EDX_MSR (1u << 5)

#define MSR_PAT 0x277

struct named_msr {
    u32 number;
    const char *name, *vendor; // NULL: of all
};

static const struct named_msr msrs[] = {
    { 0x17, "IA32_PLATFORM_ID", "GenuineIntel" },
    { 0x1b, "IA32_APIC_BASE", NULL },
    { 0x3a, "IA32_FEATURE_CONTROL", "GenuineIntel" },
    { 0x3b, "IA32_TSC_ADJUST", NULL },
    { 0x8b, "IA32_BIOS_SIGN_ID (microcode)", NULL },
    { 0xce, "MSR_PLATFORM_INFO", "GenuineIntel" },
    { 0xe2, "MSR_PKG_CST_CONFIG_CONTROL", "GenuineIntel" },
    { 0xe7, "IA32_MPERF", NULL },
    { 0xe8, "IA32_APERF", NULL },
    { 0x10a, "IA32_ARCH_CAPABILITIES", "GenuineIntel" },
    { 0x179, "IA32_MCG_CAP", NULL },
    { 0x17a, "IA32_MCG_STATUS", NULL },
    { 0x198, "IA32_PERF_STATUS", "GenuineIntel" },
    { 0x199, "IA32_PERF_CTL", "GenuineIntel" },
    { 0x19a, "IA32_CLOCK_MODULATION", "GenuineIntel" },
    { 0x19c, "IA32_THERM_STATUS", "GenuineIntel" },
    { 0x1a0, "IA32_MISC_ENABLE", "GenuineIntel" },
    { 0x1a2, "MSR_TEMPERATURE_TARGET", "GenuineIntel" },
    { 0x1ad, "MSR_TURBO_RATIO_LIMIT", "GenuineIntel" },
    { 0x1b0, "IA32_ENERGY_PERF_BIAS", "GenuineIntel" },
    { 0x1b1, "IA32_PACKAGE_THERM_STATUS", "GenuineIntel" },
    { 0x1d9, "IA32_DEBUGCTL", NULL },
    { 0x1fc, "MSR_POWER_CTL", "GenuineIntel" },
    { MSR_PAT, "IA32_PAT", NULL },
    { 0x345, "IA32_PERF_CAPABILITIES", "GenuineIntel" },
    { 0x38d, "IA32_FIXED_CTR_CTRL", "GenuineIntel" },
    { 0x38e, "IA32_PERF_GLOBAL_STATUS", "GenuineIntel" },
    { 0x38f, "IA32_PERF_GLOBAL_CTRL", "GenuineIntel" },
    { 0x770, "IA32_PM_ENABLE", "GenuineIntel" },
    { 0x771, "IA32_HWP_CAPABILITIES", "GenuineIntel" },
    { 0xc0000080, "IA32_EFER", NULL },
    { 0xc0010010, "SYSCFG", "AuthenticAMD" },
    { 0xc0010015, "HWCR", "AuthenticAMD" },
    { 0xc001001a, "TOP_MEM", "AuthenticAMD" },
    { 0xc001001d, "TOP_MEM2", "AuthenticAMD" },
    { 0xc0010061, "PStateCurLim", "AuthenticAMD" },
    { 0xc0010063, "PStateStat", "AuthenticAMD" },
    { 0xc0010064, "PStateDef0", "AuthenticAMD" },
};

// Of one register, on all CPUs.
struct msr_values {
    u32 number;
    struct {
        u64 value;
        bool there;
    } of[]; // by CPU
};

static void read_here(void *arg)
{
    struct msr_values *v = arg;
    u32 cpu = this_cpu()->id;
    v->of[cpu].there = read_msr_safely(v->number, &v->of[cpu].value);
}

static bool all_alike(const struct msr_values *v)
{
    for (u32 i = 1; i < cpu_count; i++) {
        if (v->of[i].there != v->of[0].there ||
            v->of[i].value != v->of[0].value)
            return false;
    }
    return true;
}

static void put_value(struct chain *out, const struct msr_values *v, u32 cpu)
{
    if (v->of[cpu].there)
        chain_printf(out, " %016llx", v->of[cpu].value);
    else
        chain_printf(out, " not there");
}

static void report_msr(struct chain *out, u32 number, const char *name)
{
    struct msr_values *v = kmalloc(sizeof(*v) + cpu_count * sizeof(v->of[0]));
    if (!v) {
        chain_printf(out, "%08x  %s: no memory to read it\n", number, name);
        return;
    }
    v->number = number;
    smp_call_all(read_here, v);
    chain_printf(out, "%08x", number);
    if (all_alike(v))
        put_value(out, v, 0);
    chain_printf(out, "  %s\n", name);
    for (u32 i = 0; i < cpu_count && !all_alike(v); i++) {
        chain_printf(out, "  CPU %2u:", i);
        put_value(out, v, i);
        chain_printf(out, "\n");
    }
    kfree(v);
}

static bool has_msrs(struct chain *out, u32 flag)
{
    bool has = (cpuid(1, 0).edx & flag) == flag;
    if (!has)
        chain_printf(out, "not there: by CPUID\n");
    return has;
}

void msrs_report(struct chain *out)
{
    if (!has_msrs(out, CPUID_1_EDX_MSR))
        return;
    for (u32 i = 0; i < ARRAY_SIZE(msrs); i++) {
        const struct named_msr *m = &msrs[i];
        if (!m->vendor || !strcmp(m->vendor, cpu_features.vendor))
            report_msr(out, m->number, m->name);
    }
}

// --- memory types (SDM vol. 3, 12.11, 12.12)

static const char *type_name(u32 type)
{
    static const char *const names[] = { "UC", "WC", "?",  "?",
                                         "WT", "WP", "WB", "UC-" };
    return names[type & 7];
}

static void report_fixed(struct chain *out)
{
    static const u16 fixed[] = { 0x250, 0x258, 0x259, 0x268, 0x269, 0x26a,
                                 0x26b, 0x26c, 0x26d, 0x26e, 0x26f };
    for (u32 i = 0; i < ARRAY_SIZE(fixed); i++)
        report_msr(out, fixed[i], "fixed ranges");
}

static void report_variable(struct chain *out, const struct mtrrs *m)
{
    for (u32 i = 0; i < m->count; i++) {
        u64 base = m->at[i].base, mask = m->at[i].mask;
        if (mask & MTRR_ON)
            chain_printf(out, "range %u: base %#llx, mask %#llx, %s\n", i,
                         MTRR_ADDRESS(base), MTRR_ADDRESS(mask),
                         type_name(MTRR_TYPE(base)));
    }
}

static void report_pat(struct chain *out)
{
    u64 pat = 0;
    if (!cpu_features.pat || !read_msr_safely(MSR_PAT, &pat)) {
        chain_printf(out, "PAT: not there\n");
        return;
    }
    chain_printf(out, "PAT:");
    for (u32 i = 0; i < 8; i++)
        chain_printf(out, " %s", type_name((u32)(pat >> 8 * i)));
    chain_printf(out, "\n");
}

void mtrrs_report(struct chain *out)
{
    struct mtrrs m;
    if (!has_msrs(out, CPUID_1_EDX_MSR))
        return;
    if (!mtrrs_read(&m)) {
        chain_printf(out, "MTRRs: not there\n");
    } else {
        chain_printf(out, "MTRRs %s, fixed ones %s, %u ranges; all else: %s\n",
                     m.standard & MTRR_ON ? "on" : "off",
                     m.standard & MTRR_FIXED_ON ? "on" : "off",
                     MTRR_CAP_COUNT(m.cap), type_name(MTRR_TYPE(m.standard)));
        report_variable(out, &m);
        report_fixed(out);
    }
    report_pat(out);
    chain_printf(out, "framebuffer: %s\n", mtrr_state());
}
