// See pmu_model.h. References: SDM vol. 3B, 18.2, 18.22, 19, in later editions
// "Architectural Performance Monitoring Version 6"; AMD64 APM vol. 2, 13.2; the
// BKDG and PPR of each family.
#include "pmu_model.h"

#include <assert.h>

struct model model;

bool model_is_amd(void)
{
    return model.type.kind == MODEL_AMD;
}

bool model_has_global(void)
{
    return model.type.kind != MODEL_P6 && model.type.version >= 2;
}

bool model_streamlined(void) // streamlined freezing: version 4 and later
{
    return model_is_amd() ? model.type.freezes : model.type.version >= 4;
}

u32 model_general_mask(void)
{
    return ((1u << model.type.general) - 1) & ~model.type.gaps;
}

u64 model_width_mask(void)
{
    return (1ull << model.type.width) - 1;
}

// --- counting ---------------------------------------------------------------

// Steps per event; 0: no such event. Event codes are those of the manuals.
static u32 intel_divisor(u64 code)
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
    case 0x01a4: // topdown slots: event 7 of CPUID.0AH:EBX
        return model.type.version < 5 || model.type.missing & 1u << 7 ? 0 : 1;
    }
    return 0;
}

static u32 amd_divisor(u64 code, u32 n)
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
    case 0x100000120: // P0 clocks
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
    if (!(enable & MODEL_EN) ||
        !mode_matches(select & MODEL_OS, select & MODEL_USR))
        return 0;
    if (model_has_global() &&
        (!(model.global_control & 1ull << n) || (model.status & MODEL_CTR_FRZ)))
        return 0;
    if (model.halted) // no event of the driver counts on a halted CPU
        return 0;
    u64 code = select & ~(MODEL_EN | MODEL_INT | MODEL_OS | MODEL_USR);
    const struct model_event *e = model.type.events;
    for (; e && e->select; e++) {
        if (e->select == code)
            return e->low && n > 3 ? 0 : e->divisor;
    }
    return model_is_amd() ? amd_divisor(code, n) : intel_divisor(code);
}

static u32 fixed_divisor(u32 i)
{
    u32 control = model.fixed_control >> (4 * i) & 0xf;
    if (i >= model.type.fixed || !mode_matches(control & 1, control & 2) ||
        !(model.global_control & 1ull << (32 + i)) ||
        (model.status & MODEL_CTR_FRZ) || model.halted)
        return 0;
    return 1;
}

static void raise_pmi(void)
{
    if (model.debugctl & MODEL_FREEZE && model_has_global()) {
        if (model_streamlined())
            model.status |= MODEL_CTR_FRZ;
        else
            model.global_control = 0;
    }
    if (model.lvt_masked) {
        model.lost++;
        return;
    }
    if (!model_is_amd())
        model.lvt_masked = true;
    if (!model.nmi_pending)
        model.nmi_time = model.time + model.nmi_delay;
    model.nmi_pending = true;
}

static void overflow(u32 bit, bool interrupt)
{
    if (model_has_global()) {
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
    u64 events = model_width_mask() + 1 - counter;
    return events * divisor - model.time % divisor;
}

static bool advance(u64 *counter, u32 divisor, u64 steps)
{
    if (model.lie == LIE_STILL || !divisor)
        return false;
    u64 before = *counter;
    *counter += (model.time + steps) / divisor - model.time / divisor;
    *counter &= model_width_mask();
    return *counter < before;
}

void model_deliver(void)
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
        u32 divisor[MODEL_GENERAL + MODEL_FIXED];
        for (u32 n = 0; n < MODEL_GENERAL; n++) {
            divisor[n] =
                model_general_mask() & 1u << n ? general_divisor(n) : 0;
            now = MIN(now, steps_left(model.general[n], divisor[n]));
        }
        for (u32 i = 0; i < MODEL_FIXED; i++) {
            divisor[MODEL_GENERAL + i] = fixed_divisor(i);
            now = MIN(now,
                      steps_left(model.fixed[i], divisor[MODEL_GENERAL + i]));
        }
        if (model.nmi_pending && model.nmi_time > model.time)
            now = MIN(now, model.nmi_time - model.time);
        u32 overflowed = 0;
        for (u32 n = 0; n < MODEL_GENERAL; n++)
            overflowed |= (u32)advance(&model.general[n], divisor[n], now) << n;
        for (u32 i = 0; i < MODEL_FIXED; i++)
            overflowed |=
                (u32)advance(&model.fixed[i], divisor[MODEL_GENERAL + i], now)
                << (MODEL_GENERAL + i);
        // Every stretch of time has a transaction.
        if (model.type.transactions && !model.force_abort)
            model.general[3] = 0x123456;
        model.time += now;
        steps -= now;
        for (u32 n = 0; n < MODEL_GENERAL + MODEL_FIXED; n++) {
            if (!(overflowed & 1u << n))
                continue;
            if (n < MODEL_GENERAL)
                overflow(n, model.select[n] & MODEL_INT);
            else
                overflow(n + 16,
                         model.fixed_control >> (4 * (n - MODEL_GENERAL)) & 8);
        }
        model_deliver();
    }
}

void model_nmi(void)
{
    model.nmi_pending = true;
    model.nmi_time = model.time;
    model_deliver();
}

// --- the machine ------------------------------------------------------------

// These must not fault: the register has been tried.
static u64 model_get(u32 msr)
{
    u64 value = 0;
    bool exists = model_read(msr, &value);

    assert(exists);
    return value;
}

static void model_set(u64 value, u32 msr)
{
    bool exists = model_write(msr, value);

    assert(exists);
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
    .get = model_get,
    .set = model_set,
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
    if (model_has_global())
        model.global_control = model_general_mask();
}
