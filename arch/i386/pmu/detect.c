// Detection of the performance counters that this CPU really has.
//
// CPUID is a hint only: emulators and hypervisors announce counters whose
// registers fault, ignore writes, or do not count. A counter is used if its
// registers keep values and it has been seen to count in the way it will be
// used. A counter that already runs, or that IA32_PERF_GLOBAL_INUSE reports,
// belongs to the firmware or another agent and is left alone.

#include "arch/i386/pmu/counters.h"
#include "arch/i386/pmu/registers.h"

// A load value that uses both halves, and the sign of what WRMSR takes.
#define PROBE_LOAD 0x1234567ull
// Events until a counter overflows in less than pmu_io's `work`.
#define PROBE_OVERFLOW 1000

#define INTERRUPT_TAKEN "the counters' interrupt is in use by the firmware"

static const struct pmu_event cycles = { .id = PMU_CYCLES,
                                         .user = true,
                                         .kernel = true };

// What was found of any counter; the first that applies, in reason()'s order,
// is reported.
struct findings {
    bool taken, fault, ignored;
};

// Counter `n` is another's. If it interrupts, that interrupt is the other's,
// too: there is only one (LVT PC).
static bool is_taken(struct pmu *p, u32 n, bool interrupts, struct findings *f)
{
    p->taken |= 1u << n;
    f->taken = true;
    if (interrupts)
        p->no_interrupts = INTERRUPT_TAKEN;
    return false;
}

static bool keeps(struct pmu *p, u32 msr, u64 value, struct findings *f)
{
    u64 read;
    if (!p->io->write(msr, value) || !p->io->read(msr, &read)) {
        f->fault = true;
        return false;
    }
    f->ignored |= read != value;
    return read == value;
}

static bool keeps_load(struct pmu *p, u32 n, struct findings *f)
{
    u64 mask = (1ull << p->counter[n].width) - 1, value;
    if (!pmu_write(p, n, PROBE_LOAD) ||
        !p->io->read(p->counter[n].value, &value)) {
        f->fault = true;
        return false;
    }
    bool kept = (value & mask) == (-PROBE_LOAD & mask);
    f->ignored |= !kept;
    return kept;
}

static bool probe_general(struct pmu_cpu *c, u32 n, struct findings *f)
{
    struct pmu *p = &c->pmu;
    u64 select, control = 0;
    struct pmu_code code;
    // P6 has one enable bit for both counters.
    u32 enable_msr = p->kind == PMU_P6 ? MSR_PERFEVTSEL0 : p->counter[n].select;
    if (!p->io->read(p->counter[n].select, &select) ||
        !p->io->read(enable_msr, &control)) {
        f->fault = true;
        return false;
    }
    if (control & SELECT_EN)
        return is_taken(p, n, select & SELECT_INT, f);
    pmu_encode(p, &cycles, &code);
    bool kept =
        keeps(p, p->counter[n].select, code.select, f) && keeps_load(p, n, f);
    p->io->write(p->counter[n].select, 0);
    return kept;
}

// Bits of a fixed counter in IA32_FIXED_CTR_CTRL, with that for adaptive PEBS.
static u64 fixed_bits(u32 n)
{
    u32 shift = (n - PMU_FIXED) * FIXED_BITS;
    return ((1ull << FIXED_BITS) - 1) << shift |
           1ull << (shift + FIXED_ADAPTIVE_SHIFT);
}

static bool probe_fixed(struct pmu_cpu *c, u32 n, struct findings *f)
{
    struct pmu *p = &c->pmu;
    u64 control;
    if (!p->io->read(MSR_FIXED_CTR_CTRL, &control)) {
        f->fault = true;
        return false;
    }
    u32 mode = (u32)(control >> (n - PMU_FIXED) * FIXED_BITS);
    if (mode & (FIXED_KERNEL | FIXED_USER))
        return is_taken(p, n, mode & FIXED_PMI, f);
    return keeps_load(p, n, f);
}

// What must stay in IA32_FIXED_CTR_CTRL: of the counters that are not ours.
static void keep_foreign_modes(struct pmu_cpu *c)
{
    u64 control = 0;
    if (c->pmu.counters >> PMU_FIXED)
        c->pmu.io->read(MSR_FIXED_CTR_CTRL, &control);
    for (u32 n = PMU_FIXED; n < PMU_COUNTERS; n++) {
        if (!(c->pmu.taken & 1u << n))
            control &= ~fixed_bits(n);
    }
    c->fixed_control = control;
}

// SDM 18.2.4.3: agents that share the counters see here what the others have
// programmed, be it stopped at the moment.
static void heed_others(struct pmu *p, struct findings *f)
{
    u64 used;
    if (p->kind != PMU_INTEL_ARCH || p->version < 4 ||
        !p->io->read(MSR_GLOBAL_INUSE, &used))
        return;
    for (u32 n = 0; n < PMU_COUNTERS; n++) {
        if (p->counters & 1u << n && used & pmu_global_bits(1u << n))
            is_taken(p, n, false, f);
    }
    p->counters &= ~p->taken;
    if (used & INUSE_PMI)
        p->no_interrupts = INTERRUPT_TAKEN;
}

// Whoever used the counters before may have left them frozen (SDM 18.2.4.1:
// they then do not count) or with overflow bits.
static void clear_status(const struct pmu *p)
{
    u64 status = 0;
    if (!p->global_status || p->no_interrupts)
        return;
    p->io->read(p->global_status, &status);
    status &= pmu_global_bits(p->counters) | p->other_status;
    if (status)
        p->io->write(p->global_reset, status);
}

// Bits of IA32_PERF_GLOBAL_CTRL for counters that are not ours keep their
// values. (At reset those of the general counters are set, with no counter
// enabled.)
static bool probe_global(struct pmu_cpu *c, struct findings *f)
{
    struct pmu *p = &c->pmu;
    u64 control, ours = pmu_global_bits(p->counters);
    c->gate = p->kind == PMU_P6 ? MSR_PERFEVTSEL0 : p->global_control;
    if (!p->global_control)
        return true;
    if (!p->io->read(p->global_control, &control)) {
        f->fault = true;
        return false;
    }
    c->closed = control & ~ours;
    return keeps(p, c->gate, c->closed | ours, f) &&
           keeps(p, c->gate, c->closed, f);
}

// Returns the candidates, which keep values, that also count.
static u32 see_counting(struct pmu_cpu *c)
{
    u32 candidates = c->pmu.counters, moving = 0;
    for (u32 n = 0; n < PMU_COUNTERS; n++) {
        struct pmu_code code = { .fixed = FIXED_KERNEL | FIXED_USER };
        if (n < PMU_FIXED)
            pmu_encode(&c->pmu, &cycles, &code);
        if (candidates & 1u << n)
            pmu_count_start(c, n, &code);
    }
    c->pmu.io->work();
    for (u32 n = 0; n < PMU_COUNTERS; n++) {
        if (!(candidates & 1u << n))
            continue;
        if (pmu_read(&c->pmu, n))
            moving |= 1u << n;
        pmu_stop(c, n);
    }
    return moving;
}

// The status bit of a counter must show its overflow, and go away when
// acknowledged: the next overflow would not interrupt otherwise. The interrupt
// is enabled, as it will be, but masked in the local APIC.
static bool status_works(struct pmu_cpu *c)
{
    struct pmu *p = &c->pmu;
    u32 n = (u32)__builtin_ctz(p->counters), bit = 1u << n;
    struct pmu_code code = { 0 };
    u64 status = 0;
    if (!p->io->read(p->global_status, &status) ||
        !p->io->write(p->global_reset, 0))
        return false;
    if (n < PMU_FIXED)
        pmu_encode(p, &cycles, &code);
    code.select |= SELECT_INT;
    code.fixed = FIXED_KERNEL | FIXED_USER | FIXED_PMI;
    p->io->mask_lvt();
    pmu_count_start(c, n, &code);
    pmu_write(p, n, PROBE_OVERFLOW);
    p->io->work();
    pmu_stop(c, n);
    bool shown = pmu_take_overflows(c, bit) == bit;
    return shown && p->io->read(p->global_status, &status) &&
           !(status & pmu_global_bits(bit));
}

static const char *reason(const struct pmu *p, const struct findings *f)
{
    // P6 and AMD's first four are implied by the CPU family only.
    bool promised = p->kind == PMU_INTEL_ARCH;
    if (f->fault)
        return promised ? "CPUID promises counters, but their registers fault"
                        : "no performance counters: their registers fault";
    if (f->ignored)
        return promised
                   ? "CPUID promises counters, but their registers ignore "
                     "writes"
                   : "no performance counters: their registers ignore writes";
    if (f->taken)
        return "all performance counters are in use by the firmware";
    return "the performance counters do not count";
}

const char *pmu_detect(struct pmu_cpu *c, const struct pmu_io *io)
{
    struct findings f = { 0 };
    struct pmu *p = &c->pmu;
    *c = (struct pmu_cpu){ .pmu.io = io };
    const char *why_not = pmu_describe(p);
    pmu_set_handler(c);
    if (why_not)
        return why_not;
    heed_others(p, &f);
    for (u32 n = 0; n < PMU_COUNTERS; n++) {
        bool good =
            p->counters & 1u << n &&
            (n < PMU_FIXED ? probe_general(c, n, &f) : probe_fixed(c, n, &f));
        if (!good)
            p->counters &= ~(1u << n);
    }
    keep_foreign_modes(c);
    if (!p->counters || !probe_global(c, &f))
        return reason(p, &f);
    clear_status(p);
    p->counters = see_counting(c);
    if (!p->counters)
        return reason(p, &(struct findings){ 0 });
    if (p->global_status && !p->no_interrupts && !status_works(c))
        p->no_interrupts = "the counters' overflow status does not work";
    return NULL;
}
