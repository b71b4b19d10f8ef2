// The clock of the cores of this machine's CPUs. Each CPU reads its own
// registers, in smp_call_all; the caller combines what they have read.
//
// `lock` guards the description. `measured` is written before `described`, and
// constant from then on.

#include "arch/core_clock.h"
#include "arch/cpu.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/core_clock.h"
#include "arch/i386/cpu/msr.h"
#include "kernel/sync/mutex.h"

static struct mutex lock = MUTEX_INIT(lock, "core clock");
static bool described;
static bool measured; // all CPUs have APERF and MPERF
static struct strobe_core_clock description;

static void read_cpuid(u32 leaf, u32 subleaf, u32 r[4])
{
    struct cpuid id = cpuid(leaf, subleaf);
    r[0] = id.eax;
    r[1] = id.ebx;
    r[2] = id.ecx;
    r[3] = id.edx;
}

static const struct core_clock_io machine_io = { .read = read_msr_safely,
                                                 .cpuid = read_cpuid };

struct described_cpus {
    struct strobe_core_clock of[CPU_MAX];
    bool measured[CPU_MAX];
};

static void describe_here(void *arg)
{
    struct described_cpus *d = arg;
    u32 cpu = this_cpu()->id;
    d->measured[cpu] = core_clock_of_cpu(&machine_io, &d->of[cpu]);
}

static void describe(void)
{
    static struct described_cpus d; // lock
    mutex_assert_held(&lock);
    smp_call_all(describe_here, &d);
    bool all = true;
    description = d.of[0];
    for (u32 i = 0; i < cpu_count; i++) {
        core_clock_combine(&description, &d.of[i]);
        all &= d.measured[i];
    }
    description.idle = idle_reported();
    measured = all;
    described = true;
}

void core_clock_describe(struct strobe_core_clock *out)
{
    mutex_lock(&lock);
    if (!described)
        describe();
    *out = description;
    mutex_unlock(&lock);
}

struct cycles {
    u64 actual[CPU_MAX], reference[CPU_MAX];
};

// The two are read together: between the two reads a CPU runs some 100 cycles.
static void read_here(void *arg)
{
    struct cycles *c = arg;
    u32 cpu = this_cpu()->id;
    read_msr_safely(MSR_APERF, &c->actual[cpu]);
    read_msr_safely(MSR_MPERF, &c->reference[cpu]);
}

void core_clock_read(struct strobe_core_clock *out)
{
    struct cycles c = { 0 };
    out->actual = out->reference = 0;
    if (!READ_ONCE(measured))
        return;
    smp_call_all(read_here, &c);
    for (u32 i = 0; i < cpu_count; i++) {
        out->actual += c.actual[i];
        out->reference += c.reference[i];
    }
}
