// What CPUID says of the performance counters. It is checked for sense only;
// detect.c tries what is described here.

#include "arch/i386/pmu/counters.h"
#include "arch/i386/pmu/registers.h"
#include "lib/string.h"

enum { EAX, EBX, ECX, EDX };

#define LEAF_FEATURES 7u
#define LEAF_PERFMON 0xau
#define LEAF_PERFMON_EXT 0x23u
#define LEAF_EXTENDED 0x80000000u
#define LEAF_EXTENDED_FEATURES 0x80000001u
#define LEAF_PERFMON_V2 0x80000022u

#define FEATURE_PERFMON_EXT (1u << 8)       // CPUID.07H.1:EAX
#define FEATURE_RTM_ALWAYS_ABORT (1u << 11) // CPUID.07H.0:EDX
#define FEATURE_RTM_FORCE_ABORT (1u << 13)
#define FEATURE_PERFCTR_CORE (1u << 23) // CPUID.80000001H:ECX
#define FEATURE_PERFMON_V2 (1u << 0)    // CPUID.80000022H:EAX
#define FEATURE_FREEZE (1u << 2)
#define P6_MODEL_LAST 0xdu // Pentium M; later ones have CPUID leaf 0AH
#define FAMILY_P6 6u
#define FAMILY_NETBURST 15u

// Sub-leaves of leaf 23H (SDM vol. 2A, CPUID): bits of 23H.0:EAX.
#define EXT_COUNTERS 1u
#define EXT_EVENTS 3u

static void cpuid(const struct pmu *p, u32 leaf, u32 subleaf, u32 r[4])
{
    memset(r, 0, 4 * sizeof(r[0]));
    p->io->cpuid(leaf, subleaf, r);
}

// Leaves out counters of an impossible width. (SDM 18.2.2: some early CPUs
// report fixed counters wrongly.)
static void add_counter(struct pmu *p, u32 n, struct pmu_counter counter)
{
    if (counter.width <= 32 || counter.width > 63)
        return;
    p->counters |= 1u << n;
    p->counter[n] = counter;
}

static void describe_p6(struct pmu *p)
{
    p->kind = PMU_P6;
    for (u32 i = 0; i < 2; i++) {
        add_counter(p, i,
                    (struct pmu_counter){
                        .select = MSR_PERFEVTSEL0 + i,
                        .value = MSR_PERFCTR0 + i,
                        .width = P6_WIDTH,
                    });
    }
}

// Leaf 23H tells what this kind of core has, leaf 0AH at least what all kinds
// have. Masks of counters, or 0.
static void extended_leaf(struct pmu *p, u32 max_leaf, u32 *general, u32 *fixed)
{
    u32 r[4];
    *general = *fixed = 0;
    cpuid(p, LEAF_FEATURES, 0, r);
    if (max_leaf < LEAF_PERFMON_EXT || !r[EAX])
        return;
    cpuid(p, LEAF_FEATURES, 1, r);
    if (!(r[EAX] & FEATURE_PERFMON_EXT))
        return;
    cpuid(p, LEAF_PERFMON_EXT, 0, r);
    u32 subleaves = r[EAX];
    if (subleaves & 1u << EXT_EVENTS) {
        cpuid(p, LEAF_PERFMON_EXT, EXT_EVENTS, r);
        p->missing_events &= ~r[EAX];
    }
    if (subleaves & 1u << EXT_COUNTERS) {
        cpuid(p, LEAF_PERFMON_EXT, EXT_COUNTERS, r);
        *general = r[EAX];
        *fixed = r[EBX];
    }
}

// Microcode of some Skylakes changes counter 3 in transactions, unless these
// are made to abort (Intel, "Performance Monitoring Impact of Intel TSX Memory
// Ordering Issue", 604224). Programs may use transactions.
static u32 lost_to_transactions(struct pmu *p, u32 max_leaf)
{
    u32 r[4];
    u64 control;
    if (max_leaf < LEAF_FEATURES)
        return 0;
    cpuid(p, LEAF_FEATURES, 0, r);
    if (!(r[EDX] & FEATURE_RTM_FORCE_ABORT) ||
        r[EDX] & FEATURE_RTM_ALWAYS_ABORT ||
        !p->io->read(MSR_TSX_FORCE_ABORT, &control) ||
        control & RTM_FORCE_ABORT)
        return 0;
    return 1u << 3;
}

static void add_general(struct pmu *p, u32 mask, u8 width)
{
    // The new numbers, if these registers exist (an emulator's or hypervisor's
    // version 6 may lack them).
    u64 value;
    bool new = p->version >= 6 && p->io->read(MSR_PMC_GP0_CTR, &value);
    u32 most = new ? PMU_FIXED : LEGACY_COUNTERS;
    for (u32 i = 0; i < most; i++) {
        if (!(mask & 1u << i))
            continue;
        struct pmu_counter legacy = {
            .select = MSR_PERFEVTSEL0 + i,
            .value = MSR_PERFCTR0 + i,
            .width = width,
        };
        struct pmu_counter full = {
            .select = MSR_PMC_GP0_CFG_A + i * MSR_PMC_STEP,
            .value = MSR_PMC_GP0_CTR + i * MSR_PMC_STEP,
            .width = width,
        };
        add_counter(p, i, new ? full : legacy);
    }
}

static void add_fixed(struct pmu *p, u32 mask, u8 width)
{
    u64 value;
    bool new = p->version >= 6 && p->io->read(MSR_PMC_FX0_CTR, &value);
    for (u32 i = 0; i < PMU_COUNTERS - PMU_FIXED; i++) {
        u32 msr = MSR_FIXED_CTR0 + i;
        if (new)
            msr = MSR_PMC_FX0_CTR + i * MSR_PMC_STEP;
        if (mask & 1u << i)
            add_counter(p, PMU_FIXED + i,
                        (struct pmu_counter){
                            .select = MSR_FIXED_CTR_CTRL,
                            .value = msr,
                            .width = width,
                        });
    }
}

// SDM 18.2.5 (version 5): a bit mask in ECX, which may have gaps.
static u32 fixed_counters(const struct pmu *p, const u32 leaf[4], u32 extended)
{
    if (extended)
        return extended;
    return ((1u << (leaf[EDX] & 0x1f)) - 1) | (p->version >= 5 ? leaf[ECX] : 0);
}

// Without leaf 23H, on Alder to Meteor Lake, leaf 0AH has no more on a
// performance core than an efficiency core has (Intel's perfmon list of Golden
// Cove: counters 0 to 7, fixed counters 0 to 3). The rest is tried.
#define GOLDEN_COVE_GENERAL 0xffu
#define GOLDEN_COVE_FIXED 0xfu

// SDM 18.2.1 to 18.2.5; CPUID leaf 0AH.
static void describe_architectural(struct pmu *p, u32 max_leaf,
                                   const u32 leaf[4])
{
    p->kind = PMU_INTEL_ARCH;
    p->version = leaf[EAX] & 0xff;
    // Events beyond the length of the vector are missing too.
    u32 length = leaf[EAX] >> 24;
    p->missing_events = leaf[EBX] | (length < 32 ? ~0u << length : 0);
    u32 ext_general, ext_fixed;
    extended_leaf(p, max_leaf, &ext_general, &ext_fixed);
    u32 count = MIN(leaf[EAX] >> 8 & 0xff, PMU_FIXED);
    u32 general = ext_general ? ext_general : (1u << count) - 1;
    u32 fixed = fixed_counters(p, leaf, ext_fixed);
    if (!ext_general && p->model == PMU_GOLDEN_COVE &&
        p->core == PMU_CORE_PERFORMANCE) {
        general |= GOLDEN_COVE_GENERAL;
        fixed |= GOLDEN_COVE_FIXED;
    }
    p->taken = general & lost_to_transactions(p, max_leaf);
    add_general(p, general & ~p->taken, leaf[EAX] >> 16 & 0xff);
    if (p->version < 2)
        return;
    add_fixed(p, fixed, leaf[EDX] >> 5 & 0xff);
    p->global_control = MSR_GLOBAL_CTRL;
    p->global_status = MSR_GLOBAL_STATUS;
    p->global_reset = MSR_GLOBAL_OVF_CTRL;
    p->other_status = STATUS_OVF_BUF | STATUS_COND_CHGD;
    if (p->version >= 4)
        p->other_status |= STATUS_CTR_FRZ | STATUS_LBR_FRZ;
}

static const char *describe_intel(struct pmu *p, u32 max_leaf, u32 model)
{
    u32 leaf[4] = { 0 };
    if (max_leaf >= LEAF_PERFMON)
        cpuid(p, LEAF_PERFMON, 0, leaf);
    if (leaf[EAX] & 0xff) {
        describe_architectural(p, max_leaf, leaf);
        return NULL;
    }
    if (p->family == FAMILY_P6 && model <= P6_MODEL_LAST) {
        describe_p6(p);
        return NULL;
    }
    if (p->family < FAMILY_P6 || p->family == FAMILY_NETBURST)
        return "the counters of Pentium and Pentium 4 are not supported";
    return "the CPU has no performance counters (CPUID leaf 0AH)";
}

// APM 13.2.2. CPUID has no bit for the four counters that every CPU since K7
// has.
static const char *describe_amd(struct pmu *p)
{
    u32 r[4], max;
    if (p->family < AMD_K7)
        return "AMD's CPUs have performance counters since K7 only";
    cpuid(p, LEAF_EXTENDED, 0, r);
    max = r[EAX];
    p->kind = PMU_AMD;
    p->version = 1;
    cpuid(p, LEAF_EXTENDED_FEATURES, 0, r);
    bool extended = r[ECX] & FEATURE_PERFCTR_CORE;
    u32 count = extended ? 6 : 4;
    if (max >= LEAF_PERFMON_V2 && extended) {
        cpuid(p, LEAF_PERFMON_V2, 0, r);
        if (r[EAX] & FEATURE_PERFMON_V2) {
            p->version = 2;
            count = MIN(r[EBX] & 0xf, PMU_FIXED);
            p->global_control = MSR_AMD_GLOBAL_CTL;
            p->global_status = MSR_AMD_GLOBAL_STATUS;
            p->global_reset = MSR_AMD_GLOBAL_STATUS_CLR;
            // Reserved bits where the CPU does not freeze.
            if (r[EAX] & FEATURE_FREEZE)
                p->other_status = STATUS_CTR_FRZ | STATUS_LBR_FRZ;
        }
    }
    for (u32 i = 0; i < count; i++) {
        u32 value = extended ? MSR_EXT_CTR0 + 2 * i : MSR_K7_CTR0 + i;
        add_counter(
            p, i,
            (struct pmu_counter){
                .select = extended ? MSR_EXT_CTL0 + 2 * i : MSR_K7_CTL0 + i,
                .value = value,
                .width = AMD_WIDTH,
            });
    }
    return NULL;
}

const char *pmu_describe(struct pmu *p)
{
    u32 r[4], max_leaf, model;
    char vendor[13] = { 0 };
    const char *why_not = "the performance counters of this maker's CPUs are "
                          "not known";
    cpuid(p, 0, 0, r);
    max_leaf = r[EAX];
    memcpy(vendor, &r[EBX], 4);
    memcpy(vendor + 4, &r[EDX], 4);
    memcpy(vendor + 8, &r[ECX], 4);
    cpuid(p, 1, 0, r);
    p->family = r[EAX] >> 8 & 0xf;
    model = (r[EAX] >> 4 & 0xf) | (r[EAX] >> 12 & 0xf0);
    if (p->family == 0xf)
        p->family += r[EAX] >> 20 & 0xff;
    pmu_identify(p, max_leaf, model);
    if (!strcmp(vendor, "GenuineIntel"))
        why_not = describe_intel(p, max_leaf, model);
    else if (!strcmp(vendor, "AuthenticAMD") || !strcmp(vendor, "HygonGenuine"))
        why_not = describe_amd(p);
    if (!why_not && !p->counters)
        return "CPUID reports inconsistent performance counters";
    return why_not;
}

const char *pmu_interface_name(const struct pmu *p)
{
    static const char *const intel[] = { "none",     "Intel v1", "Intel v2",
                                         "Intel v3", "Intel v4", "Intel v5",
                                         "Intel v6" };
    if (p->kind == PMU_INTEL_ARCH)
        return intel[MIN(p->version, (u32)ARRAY_SIZE(intel) - 1)];
    if (p->kind == PMU_P6)
        return "P6";
    return p->version >= 2 ? "AMD PerfMonV2" : "AMD";
}
