// The kinds of PMU that are modelled, and what their CPUID says (SDM vol. 2A,
// CPUID: leaves 0AH, 07H, 1AH, 23H; APM vol. 3, appendix E). The events are
// from Intel's list for each core and AMD's PPRs.
#include "pmu_model.h"

#include <string.h>

// --- events that only some models have --------------------------------------

// Skylake, Ice Lake. 0E.01 and B1.01 with an inverted counter mask of 1.
#define BIG_EVENTS(low)                                                 \
    { 0x81d0, 3, low }, { 0x82d0, 7, low }, { 0x0151, 20, low },        \
        { 0x10d1, 30, low }, { 0x20d1, 60, low }, { 0x0e08, 70, low },  \
        { 0x0e49, 90, low }, { 0x0e85, 110, low }, { 0x0283, 40, low }, \
        { 0x0180010e, 9, low }, { 0x018001b1, 8, low },                 \
    {                                                                   \
        0, 0, false                                                     \
    }
static const struct model_event skylake_events[] = { BIG_EVENTS(false) };
static const struct model_event icelake_events[] = { BIG_EVENTS(true) };
static const struct model_event golden_cove_events[] = {
    { 0x81d0, 3, true },     { 0x82d0, 7, true },      { 0x0151, 20, true },
    { 0x10d1, 30, true },    { 0x20d1, 60, true },     { 0x0e12, 70, true },
    { 0x0e13, 90, true },    { 0x0e11, 110, true },    { 0xe424, 40, true },
    { 0x018001ae, 9, true }, { 0x018001b1, 8, false }, { 0, 0, false },
};
static const struct model_event gracemont_events[] = {
    { 0x81d0, 3, false },  { 0x82d0, 7, false },   { 0x08d1, 20, false },
    { 0x10d1, 30, false }, { 0x20d2, 60, false },  { 0x0e08, 70, false },
    { 0x0e49, 90, false }, { 0x0e85, 110, false }, { 0x0280, 40, false },
    { 0, 0, false },
};
static const struct model_event crestmont_events[] = {
    { 0x81d0, 3, false },  { 0x82d0, 7, false },   { 0x40d1, 20, false },
    { 0x80d1, 30, false }, { 0xffd3, 60, false },  { 0x0e08, 70, false },
    { 0x0e49, 90, false }, { 0x0e85, 110, false }, { 0x0280, 40, false },
    { 0, 0, false },
};
static const struct model_event zen2_events[] = {
    { 0x0129, 3, false },   { 0x0229, 7, false },  { 0xc860, 20, false },
    { 0x5a43, 30, false },  { 0x5843, 60, false }, { 0xf045, 70, false },
    { 0x0785, 110, false }, { 0x0081, 40, false }, { 0x00a9, 9, false },
    { 0, 0, false },
};
static const struct model_event zen3_events[] = {
    { 0x0129, 3, false },   { 0x0229, 7, false },       { 0xc860, 20, false },
    { 0x5e43, 30, false },  { 0x5c43, 60, false },      { 0xf045, 70, false },
    { 0x0f85, 110, false }, { 0x10000188e, 40, false }, { 0x00a9, 9, false },
    { 0, 0, false },
};

// --- kinds ------------------------------------------------------------------

#define INTEL(...)                                    \
    {                                                 \
        .kind = MODEL_INTEL, .family = 6, __VA_ARGS__ \
    }
#define AMD(...)                                    \
    {                                               \
        .kind = MODEL_AMD, .width = 48, __VA_ARGS__ \
    }
#define NO_SLOTS (1u << 7)

const struct model_type model_p6 = { "P6",       MODEL_P6,     .family = 6,
                                     .model = 8, .general = 2, .width = 40 };
const struct model_type model_v1 =
    INTEL(.name = "Intel v1", .version = 1, .model = 14, .general = 2,
          .width = 40, .missing = 0x40 | NO_SLOTS);
const struct model_type model_v2 =
    INTEL(.name = "Intel v2", .version = 2, .model = 15, .general = 2,
          .fixed = 3, .width = 40, .missing = NO_SLOTS);
// Nehalem.
const struct model_type model_v3 =
    INTEL(.name = "Intel v3", .version = 3, .model = 26, .general = 4,
          .fixed = 3, .width = 48, .missing = NO_SLOTS);
// Skylake.
const struct model_type model_v4 =
    INTEL(.name = "Intel v4", .version = 4, .model = 94, .general = 4,
          .fixed = 3, .width = 48, .full_write = true, .missing = NO_SLOTS,
          .events = skylake_events);
// Tiger Lake.
const struct model_type model_v5 =
    INTEL(.name = "Intel v5", .version = 5, .model = 140, .general = 8,
          .fixed = 4, .width = 48, .full_write = true,
          .events = icelake_events);
// Alder Lake's cores.
const struct model_type model_big =
    INTEL(.name = "Golden Cove", .version = 5, .model = 151, .general = 8,
          .fixed = 4, .width = 48, .full_write = true, .core_type = 0x40,
          .common_general = 6, .common_fixed = 3, .events = golden_cove_events);
const struct model_type model_small =
    INTEL(.name = "Gracemont", .version = 5, .model = 151, .general = 6,
          .fixed = 3, .width = 48, .full_write = true, .core_type = 0x20,
          .missing = NO_SLOTS, .events = gracemont_events);
// Sierra Forest.
const struct model_type model_v6 =
    INTEL(.name = "Intel v6", .version = 6, .model = 175, .general = 8,
          .fixed = 3, .width = 48, .full_write = true, .leaf_23h = true,
          .missing = NO_SLOTS, .events = crestmont_events);
// A hybrid processor whose leaf 0AH has what both kinds have, and a gap.
const struct model_type model_v6_big =
    INTEL(.name = "Intel v6, big", .version = 6, .model = 189, .general = 10,
          .fixed = 7, .width = 48, .full_write = true, .core_type = 0x40,
          .gaps = 1u << 8, .common_general = 6, .common_fixed = 3,
          .leaf_23h = true);

const struct model_type model_k7 =
    AMD(.name = "K7", .version = 1, .family = 6, .model = 4, .general = 4);
const struct model_type model_k8 =
    AMD(.name = "K8", .version = 1, .family = 15, .model = 5, .general = 4);
const struct model_type model_f15 =
    AMD(.name = "15h", .version = 1, .family = 0x15, .model = 2, .general = 6,
        .extended = true);
const struct model_type model_zen =
    AMD(.name = "Zen", .version = 1, .family = 0x17, .model = 1, .general = 6,
        .extended = true);
const struct model_type model_zen2 =
    AMD(.name = "Zen 2", .version = 1, .family = 0x17, .model = 0x71,
        .general = 6, .extended = true, .events = zen2_events);
const struct model_type model_zen3 =
    AMD(.name = "Zen 3", .version = 1, .family = 0x19, .model = 0x21,
        .general = 6, .extended = true, .events = zen3_events);
const struct model_type model_zen4 =
    AMD(.name = "Zen 4", .version = 2, .family = 0x19, .model = 0x61,
        .general = 6, .extended = true, .freezes = true, .events = zen3_events);

// --- CPUID ------------------------------------------------------------------

static void perfmon_leaf(u32 r[4])
{
    const struct model_type *t = &model.type;
    u32 general = t->common_general ? t->common_general : t->general;
    u32 fixed = t->common_general ? t->common_fixed : t->fixed;
    r[0] = t->version | general << 8 | t->width << 16 | 8u << 24;
    r[1] = t->missing;
    if (t->version >= 2)
        r[3] = (t->version < 5 ? fixed : 0) | t->width << 5;
    if (t->version >= 5) {
        r[2] = (1u << fixed) - 1;
        r[3] |= 1u << 15; // AnyThread is deprecated
    }
}

static void extension_leaf(u32 subleaf, u32 r[4])
{
    const struct model_type *t = &model.type;
    if (subleaf == 0) {
        r[0] = 1u << 0 | 1u << 1 | 1u << 3;
        r[1] = 3; // UnitMask2, EQ
    } else if (subleaf == 1) {
        r[0] = model_general_mask();
        r[1] = (1u << t->fixed) - 1;
    } else if (subleaf == 3) {
        r[0] = ~t->missing & 0xff;
    }
}

static void intel_leaf(u32 leaf, u32 subleaf, u32 r[4])
{
    const struct model_type *t = &model.type;
    switch (leaf) {
    case 7:
        r[0] = subleaf ? (u32)t->leaf_23h << 8 : 1;
        r[3] = subleaf == 0
                   ? (u32)(t->core_type != 0) << 15 | (u32)t->transactions << 13
                   : 0;
        break;
    case 0xa:
        perfmon_leaf(r);
        break;
    case 0x1a:
        r[0] = t->core_type << 24;
        break;
    case 0x23:
        if (t->leaf_23h)
            extension_leaf(subleaf, r);
        break;
    }
}

static void amd_leaf(u32 leaf, u32 r[4])
{
    const struct model_type *t = &model.type;
    switch (leaf) {
    case 0x80000000:
        r[0] = t->version >= 2 ? 0x80000022 : 0x80000008;
        break;
    case 0x80000001:
        r[2] = t->extended ? 1u << 23 : 0;
        break;
    case 0x80000022:
        r[0] = 1 | (u32)t->freezes << 2;
        r[1] = t->general;
        break;
    }
}

static void vendor_leaf(u32 r[4])
{
    r[0] = model.type.kind == MODEL_INTEL ? 0x23 : 1;
    memcpy(&r[1], model_is_amd() ? "Auth" : "Genu", 4);
    memcpy(&r[3], model_is_amd() ? "enti" : "ineI", 4);
    memcpy(&r[2], model_is_amd() ? "cAMD" : "ntel", 4);
}

static void identity_leaf(u32 r[4])
{
    const struct model_type *t = &model.type;
    u32 family = MIN(t->family, 15u);
    r[0] = (t->family - family) << 20 | (t->model >> 4) << 16 | family << 8 |
           (t->model & 15) << 4;
    r[2] = t->kind == MODEL_INTEL && t->version >= 2 ? 1u << 15 : 0;
}

void model_cpuid(u32 leaf, u32 subleaf, u32 r[4])
{
    memset(r, 0, 16);
    if (leaf == 0)
        vendor_leaf(r);
    else if (leaf == 1)
        identity_leaf(r);
    else if (model.type.kind == MODEL_INTEL)
        intel_leaf(leaf, subleaf, r);
    else if (model.type.kind == MODEL_AMD)
        amd_leaf(leaf, r);
}
