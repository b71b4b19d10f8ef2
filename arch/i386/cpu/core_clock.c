// The clock of a CPU's core and its TSC, from CPUID and model-specific
// registers.
//
// Sources: Intel SDM vol. 3B, "Time-Stamp Counter" (18.17; which models have a
// constant one), "Invariant TSC" (18.17.1), "P-State Hardware Coordination"
// (APERF, MPERF), "Intel Dynamic Acceleration" and vol. 4, table 2-2
// (IA32_MISC_ENABLE bit 38); vol. 2A, CPUID leaves 1, 6, 16H and 80000007H;
// AMD64 APM vol. 2, 17.2 "Core Performance Boost", vol. 3, E.4.7 (Fn8000_0007).

#include "arch/i386/cpu/core_clock.h"

enum { EAX, EBX, ECX, EDX };

#define LEAF_1_ECX_EST (1u << 7)
#define LEAF_1_ECX_HYPERVISOR (1u << 31)
#define LEAF_6_EAX_TURBO (1u << 1)
#define LEAF_6_ECX_APERF (1u << 0)
#define LEAF_16_MHZ 0xffffu
#define LEAF_EXTENDED 0x80000000u
#define LEAF_POWER 0x80000007u
#define POWER_EDX_FID (1u << 1)
#define POWER_EDX_P_STATES (1u << 7)
#define POWER_EDX_INVARIANT (1u << 8)
#define POWER_EDX_BOOST (1u << 9)

#define MSR_MISC_ENABLE 0x1a0u
#define MISC_ENABLE_TURBO_OFF (1ull << 38)
#define MSR_HWCR 0xc0010015u
#define HWCR_BOOST_OFF (1ull << 25)

struct cpu_id {
    bool intel, amd;
    u32 max, family, model, features; // leaf 1, ECX
    u32 power;                        // leaf 80000007H, EDX
};

static struct cpu_id identify(const struct core_clock_io *io)
{
    struct cpu_id id = { 0 };
    u32 r[4] = { 0 };
    io->cpuid(0, 0, r);
    id.max = r[EAX];
    id.intel = r[EBX] == 0x756e6547; // "Genu"
    id.amd = r[EBX] == 0x68747541;   // "Auth"
    io->cpuid(1, 0, r);
    id.features = r[ECX];
    id.family = r[EAX] >> 8 & 0xf;
    id.model = r[EAX] >> 4 & 0xf;
    if (id.family == 6 || id.family == 15)
        id.model |= r[EAX] >> 12 & 0xf0;
    if (id.family == 15)
        id.family += r[EAX] >> 20 & 0xff;
    io->cpuid(LEAF_EXTENDED, 0, r);
    if (r[EAX] >= LEAF_POWER && r[EAX] <= LEAF_EXTENDED + 0xffff) {
        io->cpuid(LEAF_POWER, 0, r);
        id.power = r[EDX];
    }
    return id;
}

// SDM 18.17: Pentium 4 from model 3 on; Core Solo and Duo, and what came later
// in family 6. Before them the TSC counts the core's clock.
#define FAMILY_P6 6u
#define FAMILY_PENTIUM_4 15u
#define PENTIUM_4_CONSTANT 3u
#define P6_CONSTANT 0xeu

static enum strobe_tsc tsc_of(const struct cpu_id *id)
{
    if (id->power & POWER_EDX_INVARIANT)
        return STROBE_TSC_INVARIANT;
    // The TSC is the hypervisor's, not that of the model that it shows.
    if (id->features & LEAF_1_ECX_HYPERVISOR)
        return STROBE_TSC_UNKNOWN;
    if (id->amd && id->power & (POWER_EDX_FID | POWER_EDX_P_STATES))
        return STROBE_TSC_FOLLOWS;
    if (!id->intel)
        return STROBE_TSC_UNKNOWN;
    if ((id->family == FAMILY_P6 && id->model >= P6_CONSTANT) ||
        (id->family == FAMILY_PENTIUM_4 && id->model >= PENTIUM_4_CONSTANT))
        return STROBE_TSC_CONSTANT;
    // Without Enhanced SpeedStep the core's clock does not vary.
    return id->features & LEAF_1_ECX_EST ? STROBE_TSC_FOLLOWS
                                         : STROBE_TSC_UNKNOWN;
}

// Intel's CPUID flag is clear while the firmware has disabled turbo: then
// IA32_MISC_ENABLE says that there is one. Before Core Solo bit 38 is reserved.
static enum strobe_turbo turbo_of(const struct core_clock_io *io,
                                  const struct cpu_id *id, u32 leaf_6_eax)
{
    u64 value = 0;
    if (id->amd) {
        if (!(id->power & POWER_EDX_BOOST))
            return STROBE_TURBO_UNKNOWN;
        io->read(MSR_HWCR, &value);
        return value & HWCR_BOOST_OFF ? STROBE_TURBO_OFF : STROBE_TURBO_ON;
    }
    if (!id->intel)
        return STROBE_TURBO_UNKNOWN;
    if (leaf_6_eax & LEAF_6_EAX_TURBO)
        return STROBE_TURBO_ON;
    bool has_bit = id->family == FAMILY_P6 && id->model >= P6_CONSTANT &&
                   !(id->features & LEAF_1_ECX_HYPERVISOR);
    if (has_bit && io->read(MSR_MISC_ENABLE, &value) &&
        value & MISC_ENABLE_TURBO_OFF)
        return STROBE_TURBO_OFF;
    return STROBE_TURBO_UNKNOWN;
}

bool core_clock_of_cpu(const struct core_clock_io *io,
                       struct strobe_core_clock *out)
{
    struct cpu_id id = identify(io);
    u32 leaf_6[4] = { 0 }, leaf_16[4] = { 0 };
    u64 value;
    if (id.max >= 6)
        io->cpuid(6, 0, leaf_6);
    if (id.intel && id.max >= 0x16)
        io->cpuid(0x16, 0, leaf_16);
    *out = (struct strobe_core_clock){
        .tsc = tsc_of(&id),
        .turbo = turbo_of(io, &id, leaf_6[EAX]),
        .base_mhz = leaf_16[EAX] & LEAF_16_MHZ,
        .max_mhz = leaf_16[EBX] & LEAF_16_MHZ,
    };
    return (id.intel || id.amd) && leaf_6[ECX] & LEAF_6_ECX_APERF &&
           io->read(MSR_APERF, &value) && io->read(MSR_MPERF, &value);
}

void core_clock_combine(struct strobe_core_clock *out,
                        const struct strobe_core_clock *other)
{
    out->tsc = MIN(out->tsc, other->tsc);
    if (out->turbo != other->turbo)
        out->turbo = STROBE_TURBO_UNKNOWN;
    if (out->base_mhz != other->base_mhz)
        out->base_mhz = 0;
    out->max_mhz = MAX(out->max_mhz, other->max_mhz);
}
