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

static const struct core_clock_io machine_io = { .read = read_msr_safely,
                                                 .cpuid = cpuid_words };

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
    struct spinlock lock;
    u64 actual, reference;
};

// The two are read together: between the two reads a CPU runs some 100 cycles.
static void read_here(void *arg)
{
    struct cycles *c = arg;
    u64 actual = 0, reference = 0;
    read_msr_safely(MSR_APERF, &actual);
    read_msr_safely(MSR_MPERF, &reference);
    spin_lock(&c->lock);
    c->actual += actual;
    c->reference += reference;
    spin_unlock(&c->lock);
}

void core_clock_read(struct strobe_core_clock *out)
{
    struct cycles c = { .lock = SPINLOCK_INIT("core clock's cycles") };
    if (READ_ONCE(measured))
        smp_call_all(read_here, &c);
    out->actual = c.actual;
    out->reference = c.reference;
}
