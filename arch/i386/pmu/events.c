// Event names, and the codes that make each kind of CPU count them.

#include "arch/i386/pmu/counters.h"
#include "arch/i386/pmu/registers.h"
#include "kernel/base/errno.h"
#include "lib/string.h"

static const char *const names[] = {
#define EVENT_NAME(upper, name) [PMU_##upper] = name,
    PMU_EVENTS(EVENT_NAME)
#undef EVENT_NAME
};

static const char *const missing[] = {
#define EVENT_MISSING(upper, name) \
    [PMU_##upper] = "this CPU does not count " name,
    PMU_EVENTS(EVENT_MISSING)
#undef EVENT_MISSING
};

// --- names ------------------------------------------------------------------

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

// rNNMM or rNNNMM.
static int parse_raw(const char *text, size_t length, struct pmu_event *out)
{
    u32 value = 0;
    if (text[0] != 'r' || length < 5 || length > 6)
        return -EINVAL;
    for (size_t i = 1; i < length; i++) {
        int digit = hex_digit(text[i]);
        if (digit < 0)
            return -EINVAL;
        value = value << 4 | (u32)digit;
    }
    out->id = PMU_RAW;
    out->select = (u16)(value >> 8);
    out->mask = (u8)value;
    return 0;
}

static int parse_name(const char *text, size_t length, struct pmu_event *out)
{
    for (u32 i = 0; i < ARRAY_SIZE(names); i++) {
        if (strlen(names[i]) == length && !memcmp(names[i], text, length)) {
            out->id = i;
            return 0;
        }
    }
    return parse_raw(text, length, out);
}

// ":u", ":k", each once at most.
static int parse_modes(const char *text, struct pmu_event *out)
{
    for (; *text; text += 2) {
        if (text[0] != ':')
            return -EINVAL;
        bool *mode = text[1] == 'u'   ? &out->user
                     : text[1] == 'k' ? &out->kernel
                                      : NULL;
        if (!mode || *mode)
            return -EINVAL;
        *mode = true;
    }
    if (!out->user && !out->kernel)
        out->user = out->kernel = true;
    return 0;
}

int pmu_event_parse(const char *text, struct pmu_event *out)
{
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    struct pmu_event e = { 0 };
    if (parse_name(text, length, &e) || parse_modes(text + length, &e))
        return -EINVAL;
    *out = e;
    return 0;
}

const char *pmu_event_name(enum pmu_event_id id)
{
    return names[id];
}

// --- codes ------------------------------------------------------------------

#define CODE(event, mask) ((event) | (mask) << 8)
#define NO_CODE 0xffffffffu

// SDM table 18-1: number of the event in CPUID.0AH:EBX, and its code. SLOTS:
// "Topdown Slots". Perf's bus-cycles are the slow reference clock.
static const struct {
    u32 number, code;
} intel_events[] = {
    [PMU_CYCLES] = { 0, CODE(0x3c, 0x00) },
    [PMU_INSTRUCTIONS] = { 1, CODE(0xc0, 0x00) },
    [PMU_REF_CYCLES] = { 2, CODE(0x3c, 0x01) },
    [PMU_CACHE_REFERENCES] = { 3, CODE(0x2e, 0x4f) },
    [PMU_CACHE_MISSES] = { 4, CODE(0x2e, 0x41) },
    [PMU_BRANCHES] = { 5, CODE(0xc4, 0x00) },
    [PMU_BRANCH_MISSES] = { 6, CODE(0xc5, 0x00) },
    [PMU_BUS_CYCLES] = { 2, CODE(0x3c, 0x01) },
    [PMU_SLOTS] = { 7, CODE(0xa4, 0x01) },
};

// SDM table 18-2: the fixed-function counter of an event, or PMU_NONE.
static u32 fixed_counter(enum pmu_event_id id)
{
    switch (id) {
    case PMU_INSTRUCTIONS:
        return PMU_FIXED;
    case PMU_CYCLES:
        return PMU_FIXED + 1;
    case PMU_REF_CYCLES:
        return PMU_FIXED + 2;
    case PMU_SLOTS:
        return PMU_FIXED + 3;
    default:
        return PMU_NONE;
    }
}

// SDM vol. 3B, 19.x, "P6 family processors": CPU_CLK_UNHALTED, INST_RETIRED,
// L2_RQSTS (lines in states MESI; misses are those in state I),
// BR_INST_RETIRED, BR_MISS_PRED_RETIRED.
static const u32 p6_codes[] = {
    [PMU_CYCLES] = CODE(0x79, 0x00),
    [PMU_INSTRUCTIONS] = CODE(0xc0, 0x00),
    [PMU_REF_CYCLES] = NO_CODE,
    [PMU_CACHE_REFERENCES] = CODE(0x2e, 0x0f),
    [PMU_CACHE_MISSES] = CODE(0x2e, 0x01),
    [PMU_BRANCHES] = CODE(0xc4, 0x00),
    [PMU_BRANCH_MISSES] = CODE(0xc5, 0x00),
    [PMU_BUS_CYCLES] = NO_CODE,
    [PMU_SLOTS] = NO_CODE,
};

// AMD, the same in all families: CPU clocks not halted, retired instructions,
// branches, mispredicted branches (BKDG and PPR: PMCx076, 0C0, 0C2, 0C3). Cache
// events differ:
//   K7 (publication 22007, appendix D): accesses and misses of the data cache;
//   K8 to 16h (BKDG): requests to L2 and misses (PMCx07D, 07E), by the TLB,
//     the instruction and the data cache; 15h: in counters 0 to 2 only;
//   17h on (PPR): requests to L2 (PMCx060), and misses of those by the
//   instruction
//     cache and the data cache (PMCx064).
#define AMD_CLOCKS CODE(0x76, 0x00)
#define AMD_INSTRUCTIONS CODE(0xc0, 0x00)
#define AMD_BRANCHES CODE(0xc2, 0x00)
#define AMD_BRANCH_MISSES CODE(0xc3, 0x00)
#define AMD_P0_CLOCKS (CODE(0x20, 0x01) | 1ull << 32) // PMCx120, from Zen 4 on

static u64 amd_cache_code(const struct pmu *p, bool misses, u32 *counters)
{
    if (p->family < AMD_K8)
        return misses ? CODE(0x41, 0x00) : CODE(0x40, 0x00);
    if (p->family >= AMD_ZEN)
        return misses ? CODE(0x64, 0x09) : CODE(0x60, 0xff);
    if (p->family == AMD_BULLDOZER)
        *counters &= 7;
    return misses ? CODE(0x7e, 0x07) : CODE(0x7d, 0x07);
}

// Events that only some models have.
static const char *model_encode(const struct pmu *p, const struct pmu_event *e,
                                struct pmu_code *out)
{
    out->select = pmu_model_select(p, e->id, &out->counters);
    if (out->select)
        return NULL;
    return p->model == PMU_MODEL_UNKNOWN
               ? "of this CPU model only the common events are known"
               : missing[e->id];
}

static const char *amd_encode(const struct pmu *p, const struct pmu_event *e,
                              struct pmu_code *out)
{
    switch (e->id) {
    case PMU_CYCLES:
        out->select = AMD_CLOCKS;
        break;
    case PMU_INSTRUCTIONS:
        out->select = AMD_INSTRUCTIONS;
        break;
    case PMU_REF_CYCLES:
        if (p->version < 2)
            return missing[e->id];
        out->select = AMD_P0_CLOCKS;
        break;
    case PMU_CACHE_REFERENCES:
        out->select = amd_cache_code(p, false, &out->counters);
        break;
    case PMU_CACHE_MISSES:
        out->select = amd_cache_code(p, true, &out->counters);
        break;
    case PMU_BRANCHES:
        out->select = AMD_BRANCHES;
        break;
    case PMU_BRANCH_MISSES:
        out->select = AMD_BRANCH_MISSES;
        break;
    case PMU_RAW:
        // Bits 8 to 11 of the event number exist from family 10h on.
        if (e->select > 0xff && p->family < AMD_10H)
            return "this CPU's event numbers have two digits (rNNMM)";
        out->select =
            CODE(e->select & 0xffu, (u32)e->mask) | (u64)(e->select >> 8) << 32;
        break;
    default:
        return model_encode(p, e, out);
    }
    return NULL;
}

static const char *intel_encode(const struct pmu *p, const struct pmu_event *e,
                                struct pmu_code *out)
{
    if (e->id == PMU_RAW) {
        if (e->select > 0xff)
            return "this CPU's event numbers have two digits (rNNMM)";
        out->select = CODE(e->select, (u32)e->mask);
        return NULL;
    }
    if (e->id > PMU_SLOTS)
        return model_encode(p, e, out);
    if (p->kind == PMU_P6) {
        out->select = p6_codes[e->id];
        return p6_codes[e->id] == NO_CODE ? missing[e->id] : NULL;
    }
    u32 fixed = p->counters & 1u << fixed_counter(e->id);
    out->select = intel_events[e->id].code;
    if (p->missing_events & 1u << intel_events[e->id].number)
        out->counters = 0;
    // The fixed counter and the event for ref-cycles use different clocks (SDM
    // table 18-2, note): use the fixed one, if there is one, and never both.
    if (e->id == PMU_REF_CYCLES && fixed)
        out->counters = 0;
    out->counters |= fixed;
    return out->counters ? NULL : missing[e->id];
}

const char *pmu_encode(const struct pmu *p, const struct pmu_event *e,
                       struct pmu_code *out)
{
    *out = (struct pmu_code){ .counters = p->counters & PMU_GENERAL_MASK };
    const char *why_not =
        p->kind == PMU_AMD ? amd_encode(p, e, out) : intel_encode(p, e, out);
    if (e->user) {
        out->select |= SELECT_USER;
        out->fixed |= FIXED_USER;
    }
    if (e->kernel) {
        out->select |= SELECT_KERNEL;
        out->fixed |= FIXED_KERNEL;
    }
    if (!why_not && !out->counters)
        return "none of the counters that can count this is free to use";
    return why_not;
}

u32 pmu_event_count(const struct pmu *p)
{
    struct pmu_event e = { .user = true, .kernel = true };
    struct pmu_code code;
    u32 count = 0;
    for (; e.id < PMU_RAW; e.id++)
        count += !pmu_encode(p, &e, &code);
    return count;
}

const char *pmu_lacks(struct pmu_cpu *const *cpus, u32 count,
                      const struct pmu_event *e)
{
    const char *why_not = NULL;
    struct pmu_code code;
    u32 lack = 0, kinds = 0; // masks of enum pmu_core
    bool some = false;
    for (u32 i = 0; i < count; i++) {
        const struct pmu *p = &cpus[i]->pmu;
        const char *reason = pmu_encode(p, e, &code);
        kinds |= 1u << p->core;
        lack |= reason ? 1u << p->core : 0;
        some |= !reason;
        if (!why_not)
            why_not = reason;
    }
    if (!why_not || !some || kinds == 1u << PMU_CORE_ONLY)
        return why_not;
    if (lack == 1u << PMU_CORE_EFFICIENCY)
        return "the efficiency cores do not count it";
    if (lack == 1u << PMU_CORE_PERFORMANCE)
        return "the performance cores do not count it";
    return why_not;
}
