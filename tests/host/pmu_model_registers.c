// The registers of the model: what can be read and written, and what faults.
// References as in pmu_model.c; SDM vol. 4, table 2-2.
#include "pmu_model.h"

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

// AnyThread, bit 21 or bit 2 of a fixed counter's: versions 3 and 4; version 5
// on may deprecate it (CPUID.0AH:EDX[15]), as the types here do.
static bool any_thread(void)
{
    return model.type.kind == MODEL_INTEL && model.type.version >= 3 &&
           model.type.version < 5;
}

static u64 select_bits(u32 n)
{
    u64 bits = 0xffdfffff;
    if (model.type.kind == MODEL_P6 && n)
        bits &= ~MODEL_EN;
    if (any_thread())
        bits |= 1u << 21;
    if (model_is_amd() && model.type.family >= 0x10)
        bits |= 0xfull << 32 | 3ull << 40;
    if (model.type.leaf_23h) // UnitMask2 and EQ: CPUID.23H.0:EBX
        bits |= 0xffull << 40 | 1ull << 36;
    return bits;
}

static enum access fixed_control(bool write, u64 *v)
{
    u64 bits = 0;
    for (u32 i = 0; i < model.type.fixed; i++) {
        bits |= (any_thread() ? 0xfull : 0xbull) << (4 * i);
        if (model.type.version >= 5) // adaptive PEBS
            bits |= 1ull << (32 + 4 * i);
    }
    return reg(&model.fixed_control, bits, write, v);
}

static u64 counter_bits(void)
{
    return model_general_mask() | ((1ull << model.type.fixed) - 1) << 32;
}

static enum access reset_status(bool write, u64 *v)
{
    u64 bits = counter_bits();
    if (!model_is_amd())
        bits |= 3ull << 62;
    if (model_streamlined())
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

// IA32_PERF_GLOBAL_STATUS_SET, AMD's PerfCntrGlobalStatusSet: raises nothing.
static enum access set_status(bool write, u64 *v)
{
    u64 bits = counter_bits() | (model_streamlined() ? 3ull << 58 : 0) |
               (model_is_amd() ? 0 : 1ull << 62);
    if (!write) {
        *v = 0;
        return DONE;
    }
    if (*v & ~bits)
        return FAULT;
    model.status |= *v;
    return DONE;
}

// IA32_PERF_GLOBAL_INUSE, read-only.
static enum access in_use(bool write, u64 *v)
{
    if (write)
        return FAULT;
    *v = 0;
    for (u32 n = 0; n < model.type.general; n++) {
        *v |= model.select[n] & 0xff ? 1ull << n : 0;
        *v |= model.select[n] & MODEL_INT ? 1ull << 63 : 0;
    }
    for (u32 i = 0; i < model.type.fixed; i++) {
        u64 control = model.fixed_control >> (4 * i);
        *v |= control & 3 ? 1ull << (32 + i) : 0;
        *v |= control & 8 ? 1ull << 63 : 0;
    }
    return DONE;
}

static enum access global(u32 which, bool write, u64 *v)
{
    if (!model_has_global())
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
    return (u64)(s64)(s32)(u32)v & model_width_mask();
}

static bool has_general(u32 n)
{
    return n < MODEL_GENERAL && model_general_mask() & 1u << n;
}

// Version 6: 1900H on, 1980H on, four numbers for each counter.
static enum access new_numbers(u32 msr, bool write, u64 *v)
{
    u32 n = (msr & 0x7f) / 4;
    if (model.type.version < 6 || model.type.old_numbers || msr % 4 > 1)
        return FAULT;
    if (msr >= 0x1980)
        return msr % 4 == 0 && n < model.type.fixed
                   ? reg(&model.fixed[n], model_width_mask(), write, v)
                   : FAULT;
    if (!has_general(n))
        return FAULT;
    return msr % 4 ? reg(&model.select[n], select_bits(n), write, v)
                   : reg(&model.general[n], model_width_mask(), write, v);
}

static enum access general_register(u32 msr, bool write, u64 *v)
{
    if (msr >= 0x186)
        return msr >= 0x4c1 ? reg(&model.general[msr - 0x4c1],
                                  model_width_mask(), write, v)
                            : reg(&model.select[msr - 0x186],
                                  select_bits(msr - 0x186), write, v);
    u64 value = sign_extended(*v);
    return reg(&model.general[msr - 0xc1], ~0ull, write, write ? &value : v);
}

static enum access intel(u32 msr, bool write, u64 *v)
{
    const struct model_type *t = &model.type;
    // Eight counters have these numbers.
    if ((msr - 0x186 < 8 && has_general(msr - 0x186)) ||
        (msr - 0xc1 < 8 && has_general(msr - 0xc1)) ||
        (msr - 0x4c1 < 8 && has_general(msr - 0x4c1) && t->full_write))
        return general_register(msr, write, v);
    if (t->kind == MODEL_P6)
        return FAULT;
    if (msr >= 0x1900 && msr < 0x1a00)
        return new_numbers(msr, write, v);
    if (msr == 0x345 && t->version >= 2) {
        u64 capabilities = t->full_write << 13;
        return write ? FAULT : reg(&capabilities, 0, false, v);
    }
    if (msr - 0x309 < t->fixed)
        return reg(&model.fixed[msr - 0x309], model_width_mask(), write, v);
    if (msr == 0x38d && t->fixed)
        return fixed_control(write, v);
    if (msr >= 0x38e && msr <= 0x390)
        return global(msr - 0x38e, write, v);
    if (msr == 0x391 && t->version >= 4)
        return set_status(write, v);
    if (msr == 0x392 && t->version >= 4)
        return in_use(write, v);
    if (msr == 0x1d9)
        return reg(&model.debugctl, 0x7fc3, write, v);
    if (msr == 0x10f && t->transactions)
        return reg(&model.force_abort, 1, write, v);
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
        return reg(&model.general[msr - 0xc0010004], model_width_mask(), write,
                   v);
    if (t->extended && msr - 0xc0010200 < 2 * t->general) {
        u32 n = (msr - 0xc0010200) / 2;
        return msr % 2 ? reg(&model.general[n], model_width_mask(), write, v)
                       : reg(&model.select[n], select_bits(n), write, v);
    }
    if (msr - 0xc0000300 < 3)
        return global(msr - 0xc0000300, write, v);
    if (msr == 0xc0000303 && model_has_global())
        return set_status(write, v);
    if (msr == 0x1d9)
        return reg(&model.debugctl, t->freezes ? 0x1803 : 0x3, write, v);
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
        result =
            model_is_amd() ? amd_register(msr, write, v) : intel(msr, write, v);
    model.faults += result == FAULT;
    model_deliver();
    return result == DONE;
}

bool model_read(u32 msr, u64 *value)
{
    return access_register(msr, false, value);
}

bool model_write(u32 msr, u64 value)
{
    return access_register(msr, true, &value);
}
