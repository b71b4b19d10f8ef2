// CPU models, and the codes of events that only some of them have.
//
// The facts are from the makers' public lists of events (Intel's perfmon lists
// of each core, AMD's PPR of each family and the lists made from it), checked
// by hand; docs/counters.md has the table with the makers' names. A model that
// is not here has the common events only.

#include "arch/i386/pmu/counters.h"
#include "arch/i386/pmu/registers.h"

enum { EAX, EBX, ECX, EDX };

#define LEAF_FEATURES 7u
#define FEATURE_HYBRID (1u << 15) // CPUID.07H.0:EDX
#define LEAF_CORE_TYPE 0x1au      // EAX, bits 31-24 (SDM vol. 2A, CPUID)
#define CORE_TYPE_ATOM 0x20u
#define CORE_TYPE_CORE 0x40u

// --- models -----------------------------------------------------------------

// First and last model number of a family; `core` as in struct pmu.
static const struct known {
    u16 family;
    u8 first, last;
    u8 core; // PMU_CORE_ONLY: of any kind
    u8 model;
} known[] = {
    // SDM vol. 4, table 2-1.
    { 6, 0x4e, 0x4e, PMU_CORE_ONLY, PMU_SKYLAKE },
    { 6, 0x55, 0x55, PMU_CORE_ONLY, PMU_SKYLAKE }, // servers to Cooper Lake
    { 6, 0x5e, 0x5e, PMU_CORE_ONLY, PMU_SKYLAKE },
    { 6, 0x8e, 0x8e, PMU_CORE_ONLY, PMU_SKYLAKE }, // Kaby to Comet Lake
    { 6, 0x9e, 0x9e, PMU_CORE_ONLY, PMU_SKYLAKE },
    { 6, 0xa5, 0xa6, PMU_CORE_ONLY, PMU_SKYLAKE },
    { 6, 0x6a, 0x6a, PMU_CORE_ONLY, PMU_ICE_LAKE }, // servers
    { 6, 0x6c, 0x6c, PMU_CORE_ONLY, PMU_ICE_LAKE },
    { 6, 0x7d, 0x7e, PMU_CORE_ONLY, PMU_ICE_LAKE },
    { 6, 0x8c, 0x8d, PMU_CORE_ONLY, PMU_ICE_LAKE },    // Tiger Lake
    { 6, 0xa7, 0xa7, PMU_CORE_ONLY, PMU_ICE_LAKE },    // Rocket Lake
    { 6, 0x8f, 0x8f, PMU_CORE_ONLY, PMU_GOLDEN_COVE }, // Sapphire Rapids
    { 6, 0xcf, 0xcf, PMU_CORE_ONLY, PMU_GOLDEN_COVE }, // Emerald Rapids
    { 6, 0xad, 0xae, PMU_CORE_ONLY, PMU_GOLDEN_COVE }, // Granite Rapids
    { 6, 0xbe, 0xbe, PMU_CORE_ONLY, PMU_GRACEMONT },   // Alder Lake-N
    { 6, 0xaf, 0xaf, PMU_CORE_ONLY, PMU_CRESTMONT },   // Sierra Forest
    { 6, 0xb6, 0xb6, PMU_CORE_ONLY, PMU_CRESTMONT },   // Grand Ridge
    // Hybrid: Alder Lake, Raptor Lake, Meteor Lake.
    { 6, 0x97, 0x97, PMU_CORE_PERFORMANCE, PMU_GOLDEN_COVE },
    { 6, 0x9a, 0x9a, PMU_CORE_PERFORMANCE, PMU_GOLDEN_COVE },
    { 6, 0xb7, 0xb7, PMU_CORE_PERFORMANCE, PMU_GOLDEN_COVE },
    { 6, 0xba, 0xba, PMU_CORE_PERFORMANCE, PMU_GOLDEN_COVE },
    { 6, 0xbf, 0xbf, PMU_CORE_PERFORMANCE, PMU_GOLDEN_COVE },
    { 6, 0xaa, 0xaa, PMU_CORE_PERFORMANCE, PMU_GOLDEN_COVE },
    { 6, 0xac, 0xac, PMU_CORE_PERFORMANCE, PMU_GOLDEN_COVE },
    { 6, 0x97, 0x97, PMU_CORE_EFFICIENCY, PMU_GRACEMONT },
    { 6, 0x9a, 0x9a, PMU_CORE_EFFICIENCY, PMU_GRACEMONT },
    { 6, 0xb7, 0xb7, PMU_CORE_EFFICIENCY, PMU_GRACEMONT },
    { 6, 0xba, 0xba, PMU_CORE_EFFICIENCY, PMU_GRACEMONT },
    { 6, 0xbf, 0xbf, PMU_CORE_EFFICIENCY, PMU_GRACEMONT },
    { 6, 0xaa, 0xaa, PMU_CORE_EFFICIENCY, PMU_CRESTMONT },
    { 6, 0xac, 0xac, PMU_CORE_EFFICIENCY, PMU_CRESTMONT },
    // AMD, PPR of each model range.
    { 0x17, 0x30, 0x4f, PMU_CORE_ONLY, PMU_ZEN2 },
    { 0x17, 0x60, 0x7f, PMU_CORE_ONLY, PMU_ZEN2 },
    { 0x17, 0x90, 0x91, PMU_CORE_ONLY, PMU_ZEN2 },
    { 0x17, 0xa0, 0xaf, PMU_CORE_ONLY, PMU_ZEN2 },
    { 0x19, 0x00, 0x0f, PMU_CORE_ONLY, PMU_ZEN3 },
    { 0x19, 0x20, 0x5f, PMU_CORE_ONLY, PMU_ZEN3 },
    { 0x19, 0x10, 0x1f, PMU_CORE_ONLY, PMU_ZEN4 },
    { 0x19, 0x60, 0xaf, PMU_CORE_ONLY, PMU_ZEN4 },
};

// A CPU whose processor is not hybrid, or that does not say its kind, is of the
// only kind.
static enum pmu_core core_kind(const struct pmu *p, u32 max_leaf)
{
    u32 r[4] = { 0 };
    if (max_leaf < LEAF_CORE_TYPE)
        return PMU_CORE_ONLY;
    p->io->cpuid(LEAF_FEATURES, 0, r);
    if (!(r[EDX] & FEATURE_HYBRID))
        return PMU_CORE_ONLY;
    p->io->cpuid(LEAF_CORE_TYPE, 0, r);
    switch (r[EAX] >> 24) {
    case CORE_TYPE_ATOM:
        return PMU_CORE_EFFICIENCY;
    case CORE_TYPE_CORE:
        return PMU_CORE_PERFORMANCE;
    default:
        return PMU_CORE_ONLY;
    }
}

void pmu_identify(struct pmu *p, u32 max_leaf, u32 model)
{
    // Without efficiency cores (switched off in the BIOS, or none) the
    // processor need not call itself hybrid: its cores are performance cores.
    p->core = p->family == 6 ? core_kind(p, max_leaf) : PMU_CORE_ONLY;
    enum pmu_core wanted =
        p->core == PMU_CORE_ONLY ? PMU_CORE_PERFORMANCE : p->core;
    p->model = PMU_MODEL_UNKNOWN;
    for (u32 i = 0; i < ARRAY_SIZE(known); i++) {
        const struct known *k = &known[i];
        if (k->family == p->family && model >= k->first && model <= k->last &&
            (k->core == PMU_CORE_ONLY || k->core == wanted))
            p->model = k->model;
    }
}

const char *pmu_model_name(const struct pmu *p)
{
    static const char *const names[] = {
        [PMU_MODEL_UNKNOWN] = "unknown",
        [PMU_SKYLAKE] = "Skylake",
        [PMU_ICE_LAKE] = "Ice Lake",
        [PMU_GOLDEN_COVE] = "Golden Cove",
        [PMU_GRACEMONT] = "Gracemont",
        [PMU_CRESTMONT] = "Crestmont",
        [PMU_ZEN2] = "Zen 2",
        [PMU_ZEN3] = "Zen 3",
        [PMU_ZEN4] = "Zen 4",
    };
    return names[p->model];
}

// --- events -----------------------------------------------------------------

#define CODE(event, mask) \
    ((u64)((event)&SELECT_EVENT) | (mask) << 8 | (u64)(event) >> 8 << 32)
// Cycles in which nothing of the event happens.
#define NONE_OF(event, mask) \
    (CODE(event, mask) | SELECT_INV | 1ull << SELECT_CMASK_SHIFT)

// Same numbers in all of Intel's big cores.
#define INTEL_LOADS_AND_STORES                                                 \
    [PMU_L1D_LOADS] = CODE(0xd0, 0x81), [PMU_L1D_STORES] = CODE(0xd0, 0x82),   \
    [PMU_L1D_LOAD_MISSES] = CODE(0x51, 1), [PMU_LLC_LOADS] = CODE(0xd1, 0x10), \
    [PMU_LLC_LOAD_MISSES] = CODE(0xd1, 0x20),                                  \
    [PMU_STALLED_BACKEND] = NONE_OF(0xb1, 1)

#define INTEL_TLB                               \
    [PMU_DTLB_LOAD_MISSES] = CODE(0x08, 0x0e),  \
    [PMU_DTLB_STORE_MISSES] = CODE(0x49, 0x0e), \
    [PMU_ITLB_MISSES] = CODE(0x85, 0x0e)

#define ZEN_LOADS_AND_STORES                                                 \
    [PMU_STALLED_FRONTEND] = CODE(0xa9, 0), [PMU_L1D_LOADS] = CODE(0x29, 1), \
    [PMU_L1D_STORES] = CODE(0x29, 2),                                        \
    [PMU_L1D_LOAD_MISSES] = CODE(0x60, 0xc8),                                \
    [PMU_DTLB_LOAD_MISSES] = CODE(0x45, 0xf0)

static const u64 selects[][PMU_RAW] = {
    [PMU_MODEL_UNKNOWN] = { 0 },
    [PMU_SKYLAKE] = { INTEL_LOADS_AND_STORES,
                      INTEL_TLB, [PMU_STALLED_FRONTEND] = NONE_OF(0x0e, 1),
                      [PMU_L1I_MISSES] = CODE(0x83, 2) },
    [PMU_ICE_LAKE] = { INTEL_LOADS_AND_STORES,
                       INTEL_TLB, [PMU_STALLED_FRONTEND] = NONE_OF(0x0e, 1),
                       [PMU_L1I_MISSES] = CODE(0x83, 2) },
    [PMU_GOLDEN_COVE] = { INTEL_LOADS_AND_STORES,
                          [PMU_STALLED_FRONTEND] = NONE_OF(0xae, 1),
                          [PMU_L1I_MISSES] = CODE(0x24, 0xe4),
                          [PMU_DTLB_LOAD_MISSES] = CODE(0x12, 0x0e),
                          [PMU_DTLB_STORE_MISSES] = CODE(0x13, 0x0e),
                          [PMU_ITLB_MISSES] = CODE(0x11, 0x0e) },
    [PMU_GRACEMONT] = { INTEL_TLB, [PMU_L1D_LOADS] = CODE(0xd0, 0x81),
                        [PMU_L1D_STORES] = CODE(0xd0, 0x82),
                        [PMU_L1D_LOAD_MISSES] = CODE(0xd1, 0x08),
                        [PMU_L1I_MISSES] = CODE(0x80, 2),
                        [PMU_LLC_LOADS] = CODE(0xd1, 0x10),
                        [PMU_LLC_LOAD_MISSES] = CODE(0xd2, 0x20) },
    [PMU_CRESTMONT] = { INTEL_TLB, [PMU_L1D_LOADS] = CODE(0xd0, 0x81),
                        [PMU_L1D_STORES] = CODE(0xd0, 0x82),
                        [PMU_L1D_LOAD_MISSES] = CODE(0xd1, 0x40),
                        [PMU_L1I_MISSES] = CODE(0x80, 2),
                        [PMU_LLC_LOADS] = CODE(0xd1, 0x80),
                        [PMU_LLC_LOAD_MISSES] = CODE(0xd3, 0xff) },
    [PMU_ZEN2] = { ZEN_LOADS_AND_STORES, [PMU_L1I_MISSES] = CODE(0x81, 0),
                   [PMU_LLC_LOADS] = CODE(0x43, 0x5a),
                   [PMU_LLC_LOAD_MISSES] = CODE(0x43, 0x58),
                   [PMU_ITLB_MISSES] = CODE(0x85, 0x07) },
    [PMU_ZEN3] = { ZEN_LOADS_AND_STORES, [PMU_L1I_MISSES] = CODE(0x18e, 0x18),
                   [PMU_LLC_LOADS] = CODE(0x43, 0x5e),
                   [PMU_LLC_LOAD_MISSES] = CODE(0x43, 0x5c),
                   [PMU_ITLB_MISSES] = CODE(0x85, 0x0f) },
    [PMU_ZEN4] = { ZEN_LOADS_AND_STORES, [PMU_L1I_MISSES] = CODE(0x18e, 0x18),
                   [PMU_LLC_LOADS] = CODE(0x43, 0x5e),
                   [PMU_LLC_LOAD_MISSES] = CODE(0x43, 0x5c),
                   [PMU_ITLB_MISSES] = CODE(0x85, 0x0f) },
};

// Of the eight counters of Ice Lake and Golden Cove only the first four count
// most of these events.
#define LOW_COUNTERS 0xfu

u64 pmu_model_select(const struct pmu *p, enum pmu_event_id id, u32 *counters)
{
    if (p->model == PMU_ICE_LAKE || p->model == PMU_GOLDEN_COVE)
        *counters &= LOW_COUNTERS;
    return selects[p->model][id];
}
