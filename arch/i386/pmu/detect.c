// Detection of the performance counters that this CPU really has.
//
// CPUID is a hint only: emulators and hypervisors announce counters whose
// registers fault, ignore writes, or do not count. A counter is used if its
// registers keep values and it has been seen to count in the way it will be
// used. A counter that already runs belongs to the firmware and is left alone.

#include "arch/i386/pmu/counters.h"
#include "arch/i386/pmu/registers.h"
#include "lib/string.h"

enum { EAX, EBX, ECX, EDX };

#define LEAF_PERFMON 0xau
#define LEAF_EXTENDED 0x80000000u
#define LEAF_EXTENDED_FEATURES 0x80000001u
#define LEAF_PERFMON_V2 0x80000022u

#define FEATURE_PDCM (1u << 15)         // CPUID.01H:ECX
#define FEATURE_PERFCTR_CORE (1u << 23) // CPUID.80000001H:ECX
#define FEATURE_PERFMON_V2 (1u << 0)    // CPUID.80000022H:EAX
#define P6_MODEL_LAST 0xdu // Pentium M; later ones have CPUID leaf 0AH
#define FAMILY_P6 6u
#define FAMILY_NETBURST 15u

// A load value that uses both halves, and the sign of what WRMSR takes.
#define PROBE_LOAD 0x1234567ull

static const struct pmu_event cycles = { .id = PMU_CYCLES,
                                         .user = true,
                                         .kernel = true };

static void cpuid(const struct pmu *p, u32 leaf, u32 r[4])
{
    p->io->cpuid(leaf, 0, r);
}

// --- expected counters ------------------------------------------------------

static void add_counter(struct pmu *p, u32 n, struct pmu_counter counter)
{
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
                        .load = MSR_PERFCTR0 + i,
                        .width = P6_WIDTH,
                        .load_width = 32,
                    });
    }
}

static void describe_fixed(struct pmu *p, const u32 leaf[4])
{
    // SDM 18.2.5 (version 5): a bit mask in ECX, which may have gaps.
    u32 present = (1u << (leaf[EDX] & 0x1f)) - 1;
    if (p->version >= 5)
        present |= leaf[ECX];
    u8 width = leaf[EDX] >> 5 & 0xff;
    for (u32 i = 0; i < PMU_COUNTERS - PMU_FIXED; i++) {
        if (!(present & 1u << i))
            continue;
        add_counter(p, PMU_FIXED + i,
                    (struct pmu_counter){
                        .select = MSR_FIXED_CTR_CTRL,
                        .value = MSR_FIXED_CTR0 + i,
                        .load = MSR_FIXED_CTR0 + i,
                        .width = width,
                        .load_width = width,
                    });
    }
}

// SDM 18.2.1 to 18.2.5; CPUID leaf 0AH.
static void describe_architectural(struct pmu *p, const u32 leaf[4])
{
    p->kind = PMU_INTEL_ARCH;
    p->version = leaf[EAX] & 0xff;
    // Events beyond the length of the vector are missing too.
    u32 length = leaf[EAX] >> 24;
    p->missing_events = leaf[EBX] | (length < 32 ? ~0u << length : 0);
    u32 count = MIN(leaf[EAX] >> 8 & 0xff, PMU_FIXED);
    u8 width = leaf[EAX] >> 16 & 0xff;
    for (u32 i = 0; i < count; i++) {
        add_counter(p, i,
                    (struct pmu_counter){
                        .select = MSR_PERFEVTSEL0 + i,
                        .value = MSR_PERFCTR0 + i,
                        .load = MSR_PERFCTR0 + i,
                        .width = width,
                        .load_width = 32,
                    });
    }
    if (p->version < 2)
        return;
    describe_fixed(p, leaf);
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
        cpuid(p, LEAF_PERFMON, leaf);
    if (leaf[EAX] & 0xff) {
        describe_architectural(p, leaf);
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
    cpuid(p, LEAF_EXTENDED, r);
    max = r[EAX];
    p->kind = PMU_AMD;
    p->version = 1;
    cpuid(p, LEAF_EXTENDED_FEATURES, r);
    bool extended = r[ECX] & FEATURE_PERFCTR_CORE;
    u32 count = extended ? 6 : 4;
    if (max >= LEAF_PERFMON_V2 && extended) {
        cpuid(p, LEAF_PERFMON_V2, r);
        if (r[EAX] & FEATURE_PERFMON_V2) {
            p->version = 2;
            count = MIN(r[EBX] & 0xf, PMU_FIXED);
            p->global_control = MSR_AMD_GLOBAL_CTL;
            p->global_status = MSR_AMD_GLOBAL_STATUS;
            p->global_reset = MSR_AMD_GLOBAL_STATUS_CLR;
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
                .load = value,
                .width = AMD_WIDTH,
                .load_width = AMD_WIDTH,
            });
    }
    return NULL;
}

static const char *describe(struct pmu *p)
{
    u32 r[4], max_leaf, model;
    char vendor[13] = { 0 };
    cpuid(p, 0, r);
    max_leaf = r[EAX];
    memcpy(vendor, &r[EBX], 4);
    memcpy(vendor + 4, &r[EDX], 4);
    memcpy(vendor + 8, &r[ECX], 4);
    cpuid(p, 1, r);
    p->family = r[EAX] >> 8 & 0xf;
    model = (r[EAX] >> 4 & 0xf) | (r[EAX] >> 12 & 0xf0);
    if (p->family == 0xf)
        p->family += r[EAX] >> 20 & 0xff;
    if (!strcmp(vendor, "GenuineIntel"))
        return describe_intel(p, max_leaf, model);
    if (!strcmp(vendor, "AuthenticAMD") || !strcmp(vendor, "HygonGenuine"))
        return describe_amd(p);
    return "the performance counters of this maker's CPUs are not known";
}

// --- actual counters --------------------------------------------------------

// What was found of any counter; the first that applies, in reason()'s order,
// is reported.
struct findings {
    bool taken, fault, ignored;
};

static bool keeps(struct pmu *p, u32 msr, u64 value, struct findings *f)
{
    u64 read;
    if (!p->io->write(msr, value) || !p->io->read(msr, &read)) {
        f->fault = true;
        return false;
    }
    f->ignored |= read != value;
    return read == value;
}

static bool keeps_load(struct pmu *p, u32 n, struct findings *f)
{
    u64 mask = (1ull << p->counter[n].width) - 1;
    if (!pmu_write(p, n, PROBE_LOAD)) {
        f->fault = true;
        return false;
    }
    bool kept = pmu_read(p, n) == (-PROBE_LOAD & mask);
    f->ignored |= !kept;
    return kept;
}

// SDM 18.2.5: with IA32_PERF_CAPABILITIES.FW_WRITE a second MSR takes the full
// width. Used only if a write shows that it does.
static void try_full_width(struct pmu *p, u32 n)
{
    struct pmu_counter narrow = p->counter[n];
    p->counter[n].load = MSR_A_PMC0 + n;
    p->counter[n].load_width = narrow.width;
    if (!pmu_write(p, n, 1ull << 35) ||
        pmu_read(p, n) != (1ull << narrow.width) - (1ull << 35))
        p->counter[n] = narrow;
}

static bool probe_general(struct pmu_cpu *c, u32 n, struct findings *f)
{
    struct pmu *p = &c->pmu;
    u64 select, control = 0;
    struct pmu_code code;
    // P6 has one enable bit for both counters.
    u32 enable_msr = p->kind == PMU_P6 ? MSR_PERFEVTSEL0 : p->counter[n].select;
    if (!p->io->read(p->counter[n].select, &select) ||
        !p->io->read(enable_msr, &control)) {
        f->fault = true;
        return false;
    }
    if (control & SELECT_EN) {
        f->taken = true;
        return false;
    }
    pmu_encode(p, &cycles, &code);
    bool kept =
        keeps(p, p->counter[n].select, code.select, f) && keeps_load(p, n, f);
    p->io->write(p->counter[n].select, 0);
    return kept;
}

static bool probe_fixed(struct pmu_cpu *c, u32 n, struct findings *f)
{
    struct pmu *p = &c->pmu;
    u32 shift = (n - PMU_FIXED) * FIXED_BITS;
    u64 control;
    if (!p->io->read(MSR_FIXED_CTR_CTRL, &control)) {
        f->fault = true;
        return false;
    }
    if (control >> shift & (FIXED_KERNEL | FIXED_USER)) {
        c->fixed_control |= (u32)control & ((1u << FIXED_BITS) - 1) << shift;
        f->taken = true;
        return false;
    }
    return keeps_load(p, n, f);
}

// Bits of IA32_PERF_GLOBAL_CTRL for counters that are not ours keep their
// values. (At reset those of the general counters are set, with no counter
// enabled.)
static bool probe_global(struct pmu *p, struct findings *f)
{
    u64 control;
    if (!p->global_control)
        return true;
    if (!p->io->read(p->global_control, &control)) {
        f->fault = true;
        return false;
    }
    p->foreign = control & ~pmu_global_bits(p->counters);
    return keeps(p, p->global_control,
                 p->foreign | pmu_global_bits(p->counters), f) &&
           keeps(p, p->global_control, p->foreign, f);
}

// Returns the candidates, which keep values, that also count.
static u32 see_counting(struct pmu_cpu *c)
{
    u32 candidates = c->pmu.counters, moving = 0;
    for (u32 n = 0; n < PMU_COUNTERS; n++) {
        struct pmu_code code = { .fixed = FIXED_KERNEL | FIXED_USER };
        if (n < PMU_FIXED)
            pmu_encode(&c->pmu, &cycles, &code);
        if (candidates & 1u << n)
            pmu_count_start(c, n, &code);
    }
    c->pmu.io->work();
    for (u32 n = 0; n < PMU_COUNTERS; n++) {
        if (!(candidates & 1u << n))
            continue;
        if (pmu_read(&c->pmu, n))
            moving |= 1u << n;
        pmu_stop(c, n);
    }
    return moving;
}

static const char *reason(const struct pmu *p, const struct findings *f)
{
    // P6 and AMD's first four are implied by the CPU family only.
    bool promised = p->kind == PMU_INTEL_ARCH;
    if (f->fault)
        return promised ? "CPUID promises counters, but their registers fault"
                        : "no performance counters: their registers fault";
    if (f->ignored)
        return promised
                   ? "CPUID promises counters, but their registers ignore "
                     "writes"
                   : "no performance counters: their registers ignore writes";
    if (f->taken)
        return "all performance counters are in use by the firmware";
    return "the performance counters do not count";
}

static bool widths_make_sense(const struct pmu *p)
{
    for (u32 n = 0; n < PMU_COUNTERS; n++) {
        if (p->counters & 1u << n &&
            (p->counter[n].width <= 32 || p->counter[n].width > 63))
            return false;
    }
    return true;
}

const char *pmu_detect(struct pmu_cpu *c, const struct pmu_io *io)
{
    struct findings f = { 0 };
    struct pmu *p = &c->pmu;
    u32 r[4];
    *c = (struct pmu_cpu){ .pmu.io = io };
    const char *why_not = describe(p);
    if (why_not)
        return why_not;
    if (!p->counters || !widths_make_sense(p))
        return "CPUID reports inconsistent performance counters";
    for (u32 n = 0; n < PMU_COUNTERS; n++) {
        bool good =
            p->counters & 1u << n &&
            (n < PMU_FIXED ? probe_general(c, n, &f) : probe_fixed(c, n, &f));
        if (!good)
            p->counters &= ~(1u << n);
    }
    if (!p->counters || !probe_global(p, &f))
        return reason(p, &f);
    cpuid(p, 1, r);
    u64 capabilities;
    if (p->kind == PMU_INTEL_ARCH && r[ECX] & FEATURE_PDCM &&
        io->read(MSR_PERF_CAPABILITIES, &capabilities) &&
        capabilities & PERF_CAP_FULL_WRITE) {
        for (u32 n = 0; n < PMU_FIXED; n++) {
            if (p->counters & 1u << n)
                try_full_width(p, n);
        }
    }
    p->counters = see_counting(c);
    return p->counters ? NULL : reason(p, &(struct findings){ 0 });
}
