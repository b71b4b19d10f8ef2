// Decodes CPUID's leaves on topology and caches (SDM vol. 2A, CPUID; vol. 3A,
// 9.9; AMD's APM vol. 3, appendix E).
//
// An APIC id is fields of bits: thread, core, above them the package. Leaf 1FH,
// or else 0BH, gives the places of these fields; older processors' follow from
// the numbers of ids in leaves 1 and 4, or AMD's 80000008H. Levels between core
// and package (module, tile, die) are part of the core's number, so that it is
// unique in the package.
#include "arch/i386/cpu/topology.h"

enum { EAX, EBX, ECX, EDX };

#define LEAF_CACHES 4u
#define LEAF_FEATURES 7u
#define FEATURE_HYBRID (1u << 15) // EDX
#define LEAF_TOPOLOGY 0xbu
#define LEAF_KIND 0x1au
#define LEAF_TOPOLOGY_2 0x1fu
#define KIND_ATOM 0x20u // EAX, bits 31-24
#define KIND_CORE 0x40u
#define LEAF_EXTENDED 0x80000000u
#define LEAF_AMD_SIZES 0x80000008u
#define LEAF_AMD_CACHES 0x8000001du
#define FEATURE_HTT (1u << 28)          // leaf 1, EDX
#define FEATURE_AMD_TOPOLOGY (1u << 22) // leaf 80000001H, ECX

#define LEVELS_MAX 8u // subleaves; there are six types of levels
#define LEVEL_THREAD 1u
#define CACHES_MAX 16u
enum { CACHE_NONE, CACHE_DATA, CACHE_CODE, CACHE_UNIFIED };

struct shifts {
    u32 apic_id;
    u32 core, package; // the first bit of the core's and package's number
};

static u32 highest(cpuid_reader read, u32 base)
{
    u32 r[4];
    read(base, 0, r);
    return (r[EAX] & LEAF_EXTENDED) == base ? r[EAX] : 0;
}

static bool by_levels(cpuid_reader read, u32 leaf, struct shifts *s)
{
    u32 r[4];
    s->core = s->package = 0;
    for (u32 i = 0; i < LEVELS_MAX; i++) {
        read(leaf, i, r);
        u32 type = r[ECX] >> 8 & 0xff;
        if (!type || !(r[EBX] & 0xffff))
            return i > 0;
        s->apic_id = r[EDX];
        s->package = r[EAX] & 0x1f;
        if (type == LEVEL_THREAD)
            s->core = r[EAX] & 0x1f;
    }
    return true;
}

// Bits for `n` numbers.
static u32 bits_for(u32 n)
{
    u32 bits = 0;
    while (bits < 31 && 1u << bits < n)
        bits++;
    return bits;
}

// Without HTT a package has one id, and leaf 1 may have none: its field came
// with the Pentium 4.
static void by_counts(cpuid_reader read, u32 apic_id, struct shifts *s)
{
    u32 r[4], ids = 1, cores = 1;
    read(1, 0, r);
    s->apic_id = r[EDX] & FEATURE_HTT ? r[EBX] >> 24 : apic_id;
    if (r[EDX] & FEATURE_HTT)
        ids = r[EBX] >> 16 & 0xff;
    if (highest(read, 0) >= LEAF_CACHES) {
        read(LEAF_CACHES, 0, r);
        cores = r[EAX] & 0x1f ? (r[EAX] >> 26) + 1 : 1;
    }
    if (cores == 1 && highest(read, LEAF_EXTENDED) >= LEAF_AMD_SIZES) {
        read(LEAF_AMD_SIZES, 0, r);
        cores = (r[ECX] & 0xff) + 1;
    }
    s->package = bits_for(ids > cores ? ids : cores);
    s->core = s->package - bits_for(cores);
}

static void read_place(cpuid_reader read, u32 apic_id, struct topology *out)
{
    struct shifts s = { 0, 0, 0 };
    u32 last = highest(read, 0);
    bool known =
        last >= LEAF_TOPOLOGY_2 && by_levels(read, LEAF_TOPOLOGY_2, &s);
    if (!known && last >= LEAF_TOPOLOGY)
        known = by_levels(read, LEAF_TOPOLOGY, &s);
    if (!known)
        by_counts(read, apic_id, &s);
    if (s.core > s.package)
        s.core = s.package;
    out->package = s.apic_id >> s.package;
    out->core = (s.apic_id & ((1u << s.package) - 1)) >> s.core;
    out->thread = s.apic_id & ((1u << s.core) - 1);
}

static enum core_kind read_kind(cpuid_reader read)
{
    u32 r[4];
    if (highest(read, 0) < LEAF_KIND)
        return CORE_ANY;
    read(LEAF_FEATURES, 0, r);
    if (!(r[EDX] & FEATURE_HYBRID))
        return CORE_ANY;
    read(LEAF_KIND, 0, r);
    u32 kind = r[EAX] >> 24;
    return kind == KIND_CORE   ? CORE_PERFORMANCE
           : kind == KIND_ATOM ? CORE_EFFICIENCY
                               : CORE_ANY;
}

static void add_cache(struct topology *out, const u32 r[4])
{
    u32 ways = (r[EBX] >> 22) + 1, partitions = (r[EBX] >> 12 & 0x3ff) + 1;
    u32 line = (r[EBX] & 0xfff) + 1;
    u32 bytes = ways * partitions * line * (r[ECX] + 1);
    switch (r[EAX] >> 5 & 7) {
    case 1:
        if ((r[EAX] & 0x1f) == CACHE_CODE)
            out->l1i = bytes;
        else
            out->l1d = bytes;
        break;
    case 2:
        out->l2 = bytes;
        break;
    case 3:
        out->l3 = bytes;
        break;
    }
}

// Leaf 4, or AMD's, which has the same form.
static bool read_caches(cpuid_reader read, u32 leaf, struct topology *out)
{
    u32 r[4];
    for (u32 i = 0; i < CACHES_MAX; i++) {
        read(leaf, i, r);
        if ((r[EAX] & 0x1f) == CACHE_NONE)
            return i > 0;
        add_cache(out, r);
    }
    return true;
}

static bool amd_has_caches(cpuid_reader read)
{
    u32 r[4];
    if (highest(read, LEAF_EXTENDED) < LEAF_AMD_CACHES)
        return false;
    read(LEAF_EXTENDED + 1, 0, r);
    return r[ECX] & FEATURE_AMD_TOPOLOGY;
}

void topology_read(cpuid_reader read, u32 apic_id, struct topology *out)
{
    *out = (struct topology){ 0 };
    read_place(read, apic_id, out);
    out->kind = read_kind(read);
    bool known =
        highest(read, 0) >= LEAF_CACHES && read_caches(read, LEAF_CACHES, out);
    if (!known && amd_has_caches(read))
        read_caches(read, LEAF_AMD_CACHES, out);
}
