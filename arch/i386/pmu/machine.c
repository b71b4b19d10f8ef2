// The counters of this machine: real registers, every CPU, NMIs.
//
// Each CPU has its own struct pmu_cpu, used by that CPU only, with interrupts
// off, and by its NMIs. `pmu_lock` guards detection and the one user of
// sampling; what start and stop tell the other CPUs is constant meanwhile.

#include "arch/i386/pmu/machine.h"
#include "arch/cpu.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/irq/apic.h"
#include "arch/nmi.h"
#include "arch/trap.h"
#include "kernel/errno.h"
#include "kernel/sync/mutex.h"

struct pmu_cpu pmu_cpus[CPU_MAX];

static struct mutex pmu_lock = MUTEX_INIT(pmu_lock, "pmu");

// --- registers --------------------------------------------------------------

// At label 1 is an instruction that may fault: then execution goes on at 2.
#define FIXUP                           \
    "2:\n\t"                            \
    ".pushsection .ex_table, \"a\"\n\t" \
    ".long 1b, 2b\n\t"                  \
    ".popsection"

static bool read_msr_safely(u32 msr, u64 *value)
{
    u64 read = 0;
    u32 done = 0;
    __asm__ volatile("1: rdmsr\n\tincl %[done]\n" FIXUP
                     : "+A"(read), [done] "+r"(done)
                     : "c"(msr));
    if (done)
        *value = read;
    return done;
}

static bool write_msr_safely(u32 msr, u64 value)
{
    u32 done = 0;
    __asm__ volatile("1: wrmsr\n\tincl %[done]\n" FIXUP
                     : [done] "+r"(done)
                     : "c"(msr), "A"(value)
                     : "memory");
    return done;
}

static void read_cpuid(u32 leaf, u32 subleaf, u32 r[4])
{
    struct cpuid id = cpuid(leaf, subleaf);
    r[0] = id.eax;
    r[1] = id.ebx;
    r[2] = id.ecx;
    r[3] = id.edx;
}

static void unmask_lvt(void)
{
    lapic_counter_nmi(true);
}

static void mask_lvt(void)
{
    if (apic_present)
        lapic_counter_nmi(false);
}

static void work(void)
{
    for (u32 i = 0; i < 5000; i++)
        barrier();
}

static const struct pmu_io machine_io = {
    .read = read_msr_safely,
    .write = write_msr_safely,
    .cpuid = read_cpuid,
    .unmask_lvt = unmask_lvt,
    .mask_lvt = mask_lvt,
    .work = work,
};

// --- every CPU --------------------------------------------------------------

void pmu_on_all_cpus(void (*fn)(void *arg), void *arg)
{
    preempt_disable();
    u32 flags = irq_save();
    fn(arg);
    irq_restore(flags);
    smp_call_others(fn, arg);
    preempt_enable();
}

static bool detected; // pmu_lock
static const char *reasons[CPU_MAX];

static void detect_here(void *arg UNUSED)
{
    reasons[this_cpu()->id] = pmu_detect(pmu_this_cpu(), &machine_io);
}

const char *pmu_why_not(void)
{
    mutex_lock(&pmu_lock);
    if (!detected)
        pmu_on_all_cpus(detect_here, NULL);
    detected = true;
    mutex_unlock(&pmu_lock);
    for (u32 i = 0; i < cpu_count; i++) {
        if (reasons[i])
            return reasons[i];
    }
    return NULL;
}

const char *pmu_sampling_why_not(void)
{
    if (!apic_present)
        return "there is no local APIC to make interrupts of overflows";
    return pmu_why_not();
}

// CPUs need not be alike: cores of two kinds have counters of two kinds.
const char *pmu_event_why_not(const struct pmu_event *e)
{
    const char *why_not = NULL;
    struct pmu_code code;
    for (u32 i = 0; i < cpu_count && !why_not; i++)
        why_not = pmu_encode(&pmu_cpus[i].pmu, e, &code);
    return why_not;
}

// --- sampling ---------------------------------------------------------------

static struct {
    pmu_due_fn due; // NULL: nobody samples; pmu_lock
    struct pmu_event event;
    u64 period;
    u32 counter[CPU_MAX]; // each by its CPU; PMU_NONE: it had no free one
} sampling;

static u64 on_sample(void *arg, u32 n UNUSED, u32 weight)
{
    return sampling.due(arg, weight);
}

static bool pmu_nmi(const struct trapframe *tf)
{
    return pmu_overflow(pmu_this_cpu(), tf->eip, on_sample, (void *)tf);
}

static void start_here(void *arg UNUSED)
{
    struct pmu_cpu *c = pmu_this_cpu();
    struct pmu_code code;
    u32 *n = &sampling.counter[this_cpu()->id];
    pmu_encode(&c->pmu, &sampling.event, &code);
    *n = pmu_choose(c, code.counters);
    if (*n != PMU_NONE)
        pmu_sample_start(c, *n, &code, sampling.period);
}

static void stop_here(void *arg UNUSED)
{
    u32 n = sampling.counter[this_cpu()->id];
    if (n != PMU_NONE)
        pmu_stop(pmu_this_cpu(), n);
}

static void nothing(void *arg UNUSED)
{
}

static void stop_all(void)
{
    pmu_on_all_cpus(stop_here, NULL);
    // An NMI that was on its way when its counter stopped has come by then.
    pmu_on_all_cpus(nothing, NULL);
    nmi_give_back();
    smp_call_others(nothing, NULL);
    sampling.due = NULL;
}

static int start_all(void)
{
    int err = nmi_take(pmu_nmi);
    if (err)
        return err;
    pmu_on_all_cpus(start_here, NULL);
    for (u32 i = 0; i < cpu_count; i++) {
        if (sampling.counter[i] == PMU_NONE) {
            stop_all();
            return -EBUSY;
        }
    }
    return 0;
}

int pmu_sampling_start(const struct pmu_event *e, u64 period, pmu_due_fn due)
{
    if (pmu_sampling_why_not())
        return -ENODEV;
    if (!period || pmu_event_why_not(e))
        return -EINVAL;
    int err = -EBUSY;
    mutex_lock(&pmu_lock);
    if (!sampling.due) {
        sampling.event = *e;
        sampling.period = period;
        sampling.due = due;
        err = start_all();
        if (err)
            sampling.due = NULL;
    }
    mutex_unlock(&pmu_lock);
    return err;
}

void pmu_sampling_stop(void)
{
    mutex_lock(&pmu_lock);
    stop_all();
    mutex_unlock(&pmu_lock);
}
