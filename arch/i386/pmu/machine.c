// Counters of the real machine: registers, all CPUs, NMIs.
//
// Each CPU has its own struct pmu_cpu, which only that CPU uses, with
// interrupts off, and its NMIs. `pmu_lock` guards detection and the number of
// sampling sessions; what start and stop pass to the other CPUs is constant
// while they run.

#include "arch/i386/pmu/machine.h"
#include "arch/cpu.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/msr.h"
#include "arch/i386/irq/apic.h"
#include "arch/nmi.h"
#include "arch/trap.h"
#include "kernel/base/errno.h"
#include "kernel/sync/mutex.h"
#include "lib/cpu_memory.h"

struct pmu_cpu *pmu_cpus[CPU_MAX];
CPU_MEMORY(pmu_cpus, 1);

static struct mutex pmu_lock = MUTEX_INIT(pmu_lock, "pmu");

// --- registers --------------------------------------------------------------

static NOTRACE u64 get_msr(u32 msr)
{
    u64 value;
    __asm__ volatile("rdmsr" : "=A"(value) : "c"(msr));
    return value;
}

static NOTRACE void set_msr(u64 value, u32 msr)
{
    __asm__ volatile("wrmsr" ::"A"(value), "c"(msr) : "memory");
}

static NOTRACE void unmask_lvt(void)
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

const struct pmu_io pmu_machine_io = {
    .read = read_msr_safely,
    .write = write_msr_safely,
    .get = get_msr,
    .set = set_msr,
    .cpuid = cpuid_words,
    .unmask_lvt = unmask_lvt,
    .mask_lvt = mask_lvt,
    .work = work,
};

// --- every CPU --------------------------------------------------------------

static bool detected; // pmu_lock
static const char *reasons[CPU_MAX];

void pmu_detect_here(void *io)
{
    reasons[this_cpu()->id] = pmu_detect(pmu_this_cpu(), io);
}

const char *pmu_why_not(void)
{
    mutex_lock(&pmu_lock);
    if (!detected)
        smp_call_all(pmu_detect_here, (void *)&pmu_machine_io);
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
        return "no local APIC for the interrupts of counter overflows";
    const char *why_not = pmu_why_not();
    for (u32 i = 0; i < cpu_count && !why_not; i++)
        why_not = pmu_cpus[i]->pmu.no_interrupts;
    return why_not;
}

// CPUs may differ: hybrid processors have cores with different counters.
const char *pmu_event_why_not(const struct pmu_event *e)
{
    return pmu_lacks(pmu_cpus, cpu_count, e);
}

void pmu_info(u32 cpu, struct pmu_info *out)
{
    pmu_why_not();
    const struct pmu *p = &pmu_cpus[cpu]->pmu;
    *out = (struct pmu_info){ .why_not = reasons[cpu] };
    if (out->why_not)
        return;
    out->no_interrupts = p->no_interrupts;
    out->interface = pmu_interface_name(p);
    out->model = pmu_model_name(p);
    out->general = (u32)__builtin_popcount(p->counters & PMU_GENERAL_MASK);
    out->fixed = (u32)__builtin_popcount(p->counters & ~PMU_GENERAL_MASK);
    out->taken = (u32)__builtin_popcount(p->taken);
    out->events = pmu_event_count(p);
    for (u32 n = 0; n < PMU_COUNTERS; n++) {
        if (p->counters & 1u << n)
            out->width = MAX(out->width, (u32)p->counter[n].width);
    }
}

// --- sampling ---------------------------------------------------------------

static u32 samplings; // running sessions; under pmu_lock
static NOTRACE bool pmu_nmi(struct nmi_owner *owner UNUSED,
                            const struct trapframe *tf)
{
    return pmu_overflow(pmu_this_cpu(), tf, tf->eip);
}

static struct nmi_owner nmi_owner = { pmu_nmi };

static void start_here(void *arg)
{
    struct pmu_sampling *s = arg;
    struct pmu_cpu *c = pmu_this_cpu();
    struct pmu_code code;
    pmu_encode(&c->pmu, &s->event, &code);
    u32 n = pmu_choose(c, code.counters);
    if (n == PMU_NONE) {
        WRITE_ONCE(s->incomplete, true);
        return;
    }
    c->slot[n].user = s;
    pmu_sample_start(c, n, &code, s->period);
}

static void stop_here(void *arg)
{
    struct pmu_cpu *c = pmu_this_cpu();
    for (u32 left = c->sampling; left; left &= left - 1) {
        u32 n = (u32)__builtin_ctz(left);
        if (c->slot[n].user == arg)
            pmu_stop(c, n);
    }
}

// The last session to stop gives up NMI ownership.
static void stop_all(struct pmu_sampling *s)
{
    mutex_assert_held(&pmu_lock);
    smp_call_all(stop_here, s);
    // Quiesce: an NMI pending when its counter stopped has been delivered.
    smp_quiesce_others();
    if (--samplings)
        return;
    nmi_release(&nmi_owner);
    smp_quiesce_others();
}

static int start_all(struct pmu_sampling *s)
{
    mutex_assert_held(&pmu_lock);
    int err = samplings ? 0 : nmi_claim(&nmi_owner);
    if (err)
        return err;
    samplings++;
    s->incomplete = false;
    smp_call_all(start_here, s);
    if (!s->incomplete)
        return 0;
    stop_all(s);
    return -EBUSY;
}

int pmu_sampling_start(struct pmu_sampling *s)
{
    if (pmu_sampling_why_not())
        return -ENODEV;
    if (!s->period || pmu_event_why_not(&s->event))
        return -EINVAL;
    mutex_lock(&pmu_lock);
    int err = start_all(s);
    mutex_unlock(&pmu_lock);
    return err;
}

void pmu_sampling_stop(struct pmu_sampling *s)
{
    mutex_lock(&pmu_lock);
    stop_all(s);
    mutex_unlock(&pmu_lock);
}
