// CPU features, from the boot CPU's CPUID (SDM vol. 2, CPUID). All CPUs of a
// machine are assumed to be alike.

#include "arch/i386/cpu/arch_cpu.h"

#include "arch/i386/cpu/registers.h"
#include "lib/string.h"

struct cpu_features cpu_features;

#define LEAF_EXTENDED 0x80000000u
#define LEAF_EXTENDED_FLAGS 0x80000001u
#define LEAF_BRAND_FIRST 0x80000002u
#define LEAF_BRAND_LAST 0x80000004u
#define LEAF_POWER 0x80000007u
#define LEAF_ADDRESS_SIZES 0x80000008u

// MAXPHYADDR where that leaf is absent, and the least and the most that are
// believed: an entry has room for 52 bits (SDM vol. 3A, 4.1.4).
#define PHYSICAL_BITS_PAE 36u
#define PHYSICAL_BITS_LEAST 32u
#define PHYSICAL_BITS_MOST 52u

static void detect_family(u32 eax)
{
    struct cpu_features *f = &cpu_features;
    f->stepping = eax & 0xf;
    f->model = eax >> 4 & 0xf;
    f->family = eax >> 8 & 0xf;
    if (f->family == 6 || f->family == 15)
        f->model |= eax >> 12 & 0xf0;
    if (f->family == 15)
        f->family += eax >> 20 & 0xff;
}

static void detect_brand(u32 max_extended)
{
    u32 text[12];
    if (max_extended < LEAF_BRAND_LAST) {
        strlcpy(cpu_features.brand, cpu_features.vendor,
                sizeof(cpu_features.brand));
        return;
    }
    for (u32 i = 0; i < 3; i++) {
        struct cpuid id = cpuid(LEAF_BRAND_FIRST + i, 0);
        memcpy(text + 4 * i, &id, sizeof(id));
    }
    const char *from = (const char *)text;
    size_t left = sizeof(text);
    for (; left && *from == ' '; from++)
        left--;
    memcpy(cpu_features.brand, from, left);
    cpu_features.brand[left] = 0;
}

static u32 physical_bits(u32 max_extended, bool has_pae)
{
    u32 bits = has_pae ? PHYSICAL_BITS_PAE : PHYSICAL_BITS_LEAST;
    if (max_extended >= LEAF_ADDRESS_SIZES)
        bits = cpuid(LEAF_ADDRESS_SIZES, 0).eax & 0xff;
    bits = MAX(bits, PHYSICAL_BITS_LEAST);
    return MIN(bits, PHYSICAL_BITS_MOST);
}

void features_detect(void)
{
    struct cpu_features *f = &cpu_features;
    struct cpuid id = cpuid(0, 0);
    u32 max = id.eax;
    memcpy(f->vendor, &id.ebx, 4);
    memcpy(f->vendor + 4, &id.edx, 4);
    memcpy(f->vendor + 8, &id.ecx, 4);

    id = cpuid(1, 0);
    detect_family(id.eax);
    f->pse = id.edx >> 3 & 1;
    f->pae = read_cr4() & ASM_CR4_PAE; // boot.S has decided
    f->pae_unused = !f->pae && id.edx >> 6 & 1;
    f->mce = id.edx >> 7 & 1;
    f->mca = id.edx >> 14 & 1;
    f->apic = id.edx >> 9 & 1;
    f->pge = id.edx >> 13 & 1;
    f->pat = id.edx >> 16 & 1;
    f->fxsr = id.edx >> 24 & 1;
    f->sse = id.edx >> 25 & 1;
    f->x2apic = id.ecx >> 21 & 1;
    f->tsc_deadline = id.ecx >> 24 & 1;
    f->hypervisor = id.ecx >> 31;
    if (max >= 6 && id.edx >> 22 & 1)
        f->thermal = cpuid(6, 0).eax & 1;
    if (max >= 7) {
        id = cpuid(7, 0);
        f->smep = id.ebx >> 7 & 1;
        f->smap = id.ebx >> 20 & 1;
        f->umip = id.ecx >> 2 & 1;
    }
    u32 max_extended = cpuid(LEAF_EXTENDED, 0).eax;
    if (max_extended < LEAF_EXTENDED || max_extended > LEAF_EXTENDED + 0xffff)
        max_extended = 0;
    if (max_extended >= LEAF_EXTENDED_FLAGS)
        f->nx = f->pae && cpuid(LEAF_EXTENDED_FLAGS, 0).edx >> 20 & 1;
    if (max_extended >= LEAF_POWER)
        f->invariant_tsc = cpuid(LEAF_POWER, 0).edx >> 8 & 1;
    f->physical_bits = physical_bits(max_extended, f->pae || f->pae_unused);
    detect_brand(max_extended);
}
