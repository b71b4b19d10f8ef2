// Rates stated by CPUID's leaves 15H and 16H (SDM vol. 2), and by a hypervisor:
// KVM and VMware have leaf 40000010H, with the TSC's rate in kHz (Kataria and
// Hecht, Hypervisor CPUID Interface Proposal, VMware 2008), Hyper-V a register
// (Hypervisor Top Level Functional Specification, HV_X64_MSR_TSC_FREQUENCY).
#include "arch/i386/clock/stated_rates.h"

#define CPUID_TSC_RATIO 0x15u
#define CPUID_FREQUENCIES 0x16u
#define CPUID_HYPERVISOR 0x40000000u // the last leaf, and a name
#define CPUID_HYPERVISOR_INTERFACE 0x40000001u
#define CPUID_HYPERVISOR_FEATURES 0x40000003u
#define CPUID_HYPERVISOR_RATES 0x40000010u
#define HYPERV_INTERFACE 0x31237648u // "Hv#1"
#define HYPERV_HAS_RATES (1u << 11)  // AccessFrequencyRegs
#define MSR_HYPERV_TSC_FREQUENCY 0x40000022u

#define CRYSTAL_PPM 100u
#define BASE_PPM 10000u // a base frequency in whole MHz, from a rounded name
#define HYPERVISOR_PPM 500u // its own calibration

const char *const stated_by[STATED_RATES] = { "CPUID", "the hypervisor" };

struct words {
    u32 eax, ebx, ecx, edx;
};

static struct words leaf(const struct core_clock_io *io, u32 number)
{
    struct words w = { 0 };
    io->cpuid(number, 0, &w.eax);
    return w;
}

static struct vote plausible(u64 hz, u32 error_ppm)
{
    if (hz < TSC_HZ_MIN || hz > TSC_HZ_MAX)
        return (struct vote){ 0 };
    return (struct vote){ hz, error_ppm, false };
}

static struct vote by_processor(const struct core_clock_io *io)
{
    u32 last = leaf(io, 0).eax;
    if (last < CPUID_TSC_RATIO)
        return (struct vote){ 0 };
    // Denominator and numerator of the rate to the crystal's, and that or 0.
    struct words ratio = leaf(io, CPUID_TSC_RATIO);
    if (!ratio.eax || !ratio.ebx)
        return (struct vote){ 0 };
    if (ratio.ecx)
        return plausible((u64)ratio.ecx * ratio.ebx / ratio.eax, CRYSTAL_PPM);
    if (last < CPUID_FREQUENCIES)
        return (struct vote){ 0 };
    u32 base_mhz = leaf(io, CPUID_FREQUENCIES).eax & 0xffff;
    return plausible(base_mhz * 1000000ull, BASE_PPM);
}

static struct vote by_hyperv(const struct core_clock_io *io)
{
    u64 hz = 0;
    if (leaf(io, CPUID_HYPERVISOR_INTERFACE).eax == HYPERV_INTERFACE &&
        leaf(io, CPUID_HYPERVISOR_FEATURES).eax & HYPERV_HAS_RATES)
        io->read(MSR_HYPERV_TSC_FREQUENCY, &hz);
    return plausible(hz, HYPERVISOR_PPM);
}

static struct vote by_hypervisor(const struct core_clock_io *io)
{
    if (!(leaf(io, 1).ecx >> 31)) // the hypervisor bit
        return (struct vote){ 0 };
    u32 last = leaf(io, CPUID_HYPERVISOR).eax;
    struct vote v = { 0 };
    if (last >= CPUID_HYPERVISOR_FEATURES && last < CPUID_HYPERVISOR + 0x10000)
        v = by_hyperv(io);
    if (!v.tsc_hz && last >= CPUID_HYPERVISOR_RATES &&
        last < CPUID_HYPERVISOR + 0x10000)
        v = plausible(leaf(io, CPUID_HYPERVISOR_RATES).eax * 1000ull,
                      HYPERVISOR_PPM);
    return v;
}

void stated_rates(const struct core_clock_io *io, struct vote votes[])
{
    votes[0] = by_processor(io);
    votes[1] = by_hypervisor(io);
}
