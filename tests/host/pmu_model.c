// See pmu_model.h. References: SDM vol. 3B, 18.2, 18.22, 19; AMD64 APM vol. 2,
// 13.2; the BKDG and PPR of each family.
#include "pmu_model.h"

#include <assert.h>
#include <string.h>

struct model model;

const struct model_type model_p6 = { "P6", MODEL_P6, 0,     6,     8, 2,
                                     0,    40,       false, false, 0 };
const struct model_type model_v1 = { "Intel v1", MODEL_INTEL, 1,   6,
                                     14,         2,           0,   40,
                                     false,      false,       0x40 };
const struct model_type model_v2 = { "Intel v2", MODEL_INTEL, 2, 6,
                                     15,         2,           3, 40,
                                     false,      false,       0 };
const struct model_type model_v4 = { "Intel v4", MODEL_INTEL, 4, 6,
                                     94,         4,           3, 48,
                                     true,       false,       0 };
const struct model_type model_v5 = { "Intel v5", MODEL_INTEL, 5, 6,
                                     140,        8,           3, 48,
                                     true,       false,       0 };
const struct model_type model_k7 = { "K7", MODEL_AMD, 1,     6,     4, 4,
                                     0,    48,        false, false, 0 };
const struct model_type model_k8 = { "K8", MODEL_AMD, 1,     15,    5, 4,
                                     0,    48,        false, false, 0 };
const struct model_type model_f15 = { "15h", MODEL_AMD, 1,     0x15, 2, 6,
                                      0,     48,        false, true, 0 };
const struct model_type model_zen = { "Zen", MODEL_AMD, 1,     0x17, 1, 6,
                                      0,     48,        false, true, 0 };
const struct model_type model_zen4 = { "Zen 4", MODEL_AMD, 2,     0x19, 0x61, 6,
                                       0,       48,        false, true, 0 };

#define EN (1ull << 22)
#define INT (1ull << 20)
#define OS (1ull << 17)
#define USR (1ull << 16)
#define FREEZE (1ull << 12)
#define CTR_FRZ (1ull << 59)

static bool amd(void)
{
    return model.type.kind == MODEL_AMD;
}

static bool has_global(void)
{
    return model.type.kind != MODEL_P6 && model.type.version >= 2;
}

static bool streamlined(void) // streamlined freezing: version 4 and later
{
    return amd() || model.type.version >= 4;
}

static u64 width_mask(void)
{
    return (1ull << model.type.width) - 1;
}

static u64 counter_bits(void)
{
    return ((1ull << model.type.general) - 1) | ((1ull << model.type.fixed) - 1)
                                                    << 32;
}

// --- counting ---------------------------------------------------------------

// Steps per event; 0: no such event. Event codes are those of the manuals.
static u32 intel_divisor(u32 code)
{
    bool p6 = model.type.kind == MODEL_P6;
    switch (code) {
    case 0x003c:
        return p6 ? 0 : 1; // unhalted core cycles
    case 0x013c:
        return p6 ? 0 : 2; // unhalted reference cycles, a slower clock
    case 0x0079:
        return p6 ? 1 : 0; // CPU_CLK_UNHALTED
    case 0x00c0:
        return 1;
    case 0x4f2e:
        return p6 ? 0 : 4;
    case 0x412e:
        return p6 ? 0 : 16;
    case 0x0f2e:
        return p6 ? 4 : 0; // L2_RQSTS, MESI
    case 0x012e:
        return p6 ? 16 : 0; // L2_RQSTS, I
    case 0x00c4:
        return 5;
    case 0x00c5:
        return 50;
    }
    return 0;
}

static u32 amd_divisor(u32 code, u32 n)
{
    u32 family = model.type.family;
    bool k7 = family == 6, zen = family >= 0x17;
    switch (code) {
    case 0x0076:
    case 0x00c0:
        return 1;
    case 0x00c2:
        return 5;
    case 0x00c3:
        return 50;
    case 0x0040:
        return k7 ? 4 : 0;
    case 0x0041:
        return k7 ? 16 : 0;
    case 0x077d: // family 15h: counters 0 to 2 only
        return k7 || zen || (family == 0x15 && n > 2) ? 0 : 4;
    case 0x077e:
        return k7 || zen || (family == 0x15 && n > 2) ? 0 : 16;
    case 0xff60:
        return zen ? 4 : 0;
    case 0x0964:
        return zen ? 16 : 0;
    case 0x10120: // P0 clocks
        return model.type.version >= 2 ? 1 : 0;
    }
    return 0;
}

static bool mode_matches(bool os, bool usr)
{
    return model.user ? usr : os;
}

static u32 general_divisor(u32 n)
{
    u64 select = model.select[n];
    u64 enable = model.type.kind == MODEL_P6 ? model.select[0] : select;
    if (!(enable & EN) || !mode_matches(select & OS, select & USR))
        return 0;
    if (has_global() &&
        (!(model.global_control & 1ull << n) || (model.status & CTR_FRZ)))
        return 0;
    if (model.halted) // no event of the driver counts on a halted CPU
        return 0;
    u32 code = (u32)(select & 0xffff) | (u32)(select >> 32 & 0xf) << 16;
    return amd() ? amd_divisor((code & 0xff) | (code & 0xff00) |
                                   (code >> 16 ? 0x10000 : 0),
                               n)
                 : intel_divisor(code);
}

static u32 fixed_divisor(u32 i)
{
    u32 control = model.fixed_control >> (4 * i) & 0xf;
    if (i >= model.type.fixed || !mode_matches(control & 1, control & 2) ||
        !(model.global_control & 1ull << (32 + i)) ||
        (model.status & CTR_FRZ) || model.halted)
        return 0;
    return 1;
}

static void raise_pmi(void)
{
    if (model.debugctl & FREEZE && has_global()) {
        if (streamlined())
            model.status |= CTR_FRZ;
        else
            model.global_control = 0;
    }
    if (model.lvt_masked) {
        model.lost++;
        return;
    }
    if (!amd())
        model.lvt_masked = true;
    if (!model.nmi_pending)
        model.nmi_time = model.time + model.nmi_delay;
    model.nmi_pending = true;
}

static void overflow(u32 bit, bool interrupt)
{
    if (has_global()) {
        if (model.status & 1ull << bit)
            return; // not acknowledged: no second interrupt
        model.status |= 1ull << bit;
    }
    if (interrupt)
        raise_pmi();
}

// Steps until `counter` overflows.
static u64 steps_left(u64 counter, u32 divisor)
{
    if (model.lie == LIE_STILL || !divisor)
        return ~0ull;
    u64 events = width_mask() + 1 - counter;
    return events * divisor - model.time % divisor;
}

static bool advance(u64 *counter, u32 divisor, u64 steps)
{
    if (model.lie == LIE_STILL || !divisor)
        return false;
    u64 before = *counter;
    *counter += (model.time + steps) / divisor - model.time / divisor;
    *counter &= width_mask();
    return *counter < before;
}

static void deliver(void)
{
    while (!model.in_nmi && model.nmi_pending && model.nmi_time <= model.time) {
        bool user = model.user;
        model.nmi_pending = false;
        model.in_nmi = true;
        model.user = false;
        model.halted = false;
        model.nmis++;
        model.handler();
        model.user = user;
        model.in_nmi = false;
    }
}

void model_run(u64 steps)
{
    while (steps) {
        u64 now = steps;
        u32 divisor[19];
        for (u32 n = 0; n < 16; n++) {
            divisor[n] = n < model.type.general ? general_divisor(n) : 0;
            now = MIN(now, steps_left(model.general[n], divisor[n]));
        }
        for (u32 i = 0; i < 3; i++) {
            divisor[16 + i] = fixed_divisor(i);
            now = MIN(now, steps_left(model.fixed[i], divisor[16 + i]));
        }
        if (model.nmi_pending && model.nmi_time > model.time)
            now = MIN(now, model.nmi_time - model.time);
        u32 overflowed = 0;
        for (u32 n = 0; n < 16; n++)
            overflowed |= (u32)advance(&model.general[n], divisor[n], now) << n;
        for (u32 i = 0; i < 3; i++)
            overflowed |= (u32)advance(&model.fixed[i], divisor[16 + i], now)
                          << (16 + i);
        model.time += now;
        steps -= now;
        for (u32 n = 0; n < 19; n++) {
            if (!(overflowed & 1u << n))
                continue;
            if (n < 16)
                overflow(n, model.select[n] & INT);
            else
                overflow(n + 16, model.fixed_control >> (4 * (n - 16)) & 8);
        }
        deliver();
    }
}

void model_nmi(void)
{
    model.nmi_pending = true;
    model.nmi_time = model.time;
    deliver();
}

// --- registers --------------------------------------------------------------

enum access { FAULT, DONE };

// Writes *v to *r, or reads it. A write of bits outside `writable` faults.
static enum access reg(u64 *r, u64 writable, bool write, u64 *v)
{
    if (!write) {
        *v = *r;
        return DONE;
    }
    if (*v & ~writable)
        return FAULT;
    *r = *v;
    return DONE;
}

static u64 select_bits(u32 n)
{
    u64 bits = 0xffdfffff; // all but bit 21: AnyThread, or reserved
    if (model.type.kind == MODEL_P6 && n)
        bits &= ~EN;
    if (model.type.kind == MODEL_INTEL && model.type.version >= 3 &&
        model.type.version < 5)
        bits |= 1u << 21;
    if (amd() && model.type.family >= 0x10)
        bits |= 0xfull << 32 | 3ull << 40;
    return bits;
}

static enum access fixed_control(bool write, u64 *v)
{
    u64 bits = 0;
    for (u32 i = 0; i < model.type.fixed; i++)
        bits |= (model.type.version >= 3 && model.type.version < 5 ? 0xfull
                                                                   : 0xbull)
                << (4 * i);
    return reg(&model.fixed_control, bits, write, v);
}

static enum access reset_status(bool write, u64 *v)
{
    u64 bits = counter_bits();
    if (!amd())
        bits |= 3ull << 62;
    if (streamlined())
        bits |= 3ull << 58;
    if (!write) {
        *v = 0;
        return DONE;
    }
    if (*v & ~bits)
        return FAULT;
    model.status &= ~*v;
    return DONE;
}

static enum access global(u32 which, bool write, u64 *v)
{
    if (!has_global())
        return FAULT;
    switch (which) {
    case 0: // status: read only
        return write ? FAULT : reg(&model.status, 0, false, v);
    case 1:
        return reg(&model.global_control, counter_bits(), write, v);
    default:
        return reset_status(write, v);
    }
}

static u64 sign_extended(u64 v)
{
    return (u64)(s64)(s32)(u32)v & width_mask();
}

static enum access intel(u32 msr, bool write, u64 *v)
{
    const struct model_type *t = &model.type;
    if (msr - 0x186 < t->general)
        return reg(&model.select[msr - 0x186], select_bits(msr - 0x186), write,
                   v);
    if (msr - 0xc1 < t->general) {
        u64 value = sign_extended(*v);
        return reg(&model.general[msr - 0xc1], ~0ull, write,
                   write ? &value : v);
    }
    if (t->kind == MODEL_P6)
        return FAULT;
    if (msr == 0x345 && t->version >= 2) {
        u64 capabilities = t->full_write << 13;
        return write ? FAULT : reg(&capabilities, 0, false, v);
    }
    if (msr - 0x4c1 < t->general && t->full_write)
        return reg(&model.general[msr - 0x4c1], width_mask(), write, v);
    if (msr - 0x309 < t->fixed)
        return reg(&model.fixed[msr - 0x309], width_mask(), write, v);
    if (msr == 0x38d && t->fixed)
        return fixed_control(write, v);
    if (msr == 0x38e)
        return global(0, write, v);
    if (msr == 0x38f)
        return global(1, write, v);
    if (msr == 0x390)
        return global(2, write, v);
    if (msr == 0x1d9)
        return reg(&model.debugctl, 0x7fc3, write, v);
    return FAULT;
}

static enum access amd_register(u32 msr, bool write, u64 *v)
{
    const struct model_type *t = &model.type;
    // The first four have the old addresses too.
    if (msr - 0xc0010000 < 4)
        return reg(&model.select[msr - 0xc0010000],
                   select_bits(msr - 0xc0010000), write, v);
    if (msr - 0xc0010004 < 4)
        return reg(&model.general[msr - 0xc0010004], width_mask(), write, v);
    if (t->extended && msr - 0xc0010200 < 2 * t->general) {
        u32 n = (msr - 0xc0010200) / 2;
        return msr % 2 ? reg(&model.general[n], width_mask(), write, v)
                       : reg(&model.select[n], select_bits(n), write, v);
    }
    if (msr - 0xc0000300 < 3)
        return global(msr - 0xc0000300, write, v);
    if (msr == 0x1d9)
        return reg(&model.debugctl, 0x1803, write, v);
    return FAULT;
}

static bool access_register(u32 msr, bool write, u64 *v)
{
    model_run(model.access_cost);
    if (model.lie == LIE_ZERO) {
        if (!write)
            *v = 0;
        return true;
    }
    enum access result = FAULT;
    if (model.lie != LIE_FAULT)
        result = amd() ? amd_register(msr, write, v) : intel(msr, write, v);
    model.faults += result == FAULT;
    deliver();
    return result == DONE;
}

static bool model_read(u32 msr, u64 *value)
{
    return access_register(msr, false, value);
}

static bool model_write(u32 msr, u64 value)
{
    return access_register(msr, true, &value);
}

static void model_cpuid(u32 leaf, u32 subleaf, u32 r[4])
{
    const struct model_type *t = &model.type;
    (void)subleaf;
    memset(r, 0, 16);
    switch (leaf) {
    case 0:
        r[0] = t->kind == MODEL_INTEL ? 0xd : 1;
        memcpy(&r[1], amd() ? "Auth" : "Genu", 4);
        memcpy(&r[3], amd() ? "enti" : "ineI", 4);
        memcpy(&r[2], amd() ? "cAMD" : "ntel", 4);
        break;
    case 1: {
        u32 family = MIN(t->family, 15u);
        r[0] = (t->family - family) << 20 | (t->model >> 4) << 16 |
               family << 8 | (t->model & 15) << 4;
        r[2] = t->kind == MODEL_INTEL && t->version >= 2 ? 1u << 15 : 0;
        break;
    }
    case 0xa:
        if (t->kind != MODEL_INTEL)
            break;
        r[0] = t->version | t->general << 8 | t->width << 16 | 7u << 24;
        r[1] = t->missing;
        if (t->version >= 2)
            r[3] = (t->version < 5 ? t->fixed : 0) | t->width << 5;
        if (t->version >= 5)
            r[2] = (1u << t->fixed) - 1;
        break;
    case 0x80000000:
        r[0] =
            t->kind == MODEL_AMD && t->version >= 2 ? 0x80000022 : 0x80000008;
        break;
    case 0x80000001:
        r[2] = t->extended ? 1u << 23 : 0;
        break;
    case 0x80000022:
        r[0] = 1;
        r[1] = t->general;
        break;
    }
}

static void model_unmask(void)
{
    model_run(model.access_cost);
    model.lvt_masked = false;
}

static void model_mask(void)
{
    model_run(model.access_cost);
    model.lvt_masked = true;
}

static void model_work(void)
{
    model_run(10000);
}

const struct pmu_io model_io = {
    .read = model_read,
    .write = model_write,
    .cpuid = model_cpuid,
    .unmask_lvt = model_unmask,
    .mask_lvt = model_mask,
    .work = model_work,
};

static void no_nmi(void)
{
    assert(!"an NMI without a handler");
}

void model_init(const struct model_type *type)
{
    model = (struct model){
        .type = *type, .lvt_masked = true, .access_cost = 20, .handler = no_nmi
    };
    // Reset: the general counters' bits of the global control are set.
    if (has_global())
        model.global_control = (1ull << type->general) - 1;
}
