// Instructions that a sample by a performance counter takes (--icount), on
// counters made of memory: from the NMI's entry to its return.

#include "tests/kernel/test.h"

#include "arch/cpu.h"
#include "arch/i386/irq/apic.h"
#include "arch/i386/pmu/machine.h"
#include "arch/i386/pmu/registers.h"
#include "arch/instructions.h"
#include "kernel/base/errno.h"
#include "kernel/profile/session_private.h"
#include "kernel/task/task.h"
#include "lib/string.h"
#include "tests/kernel/sample_helpers.h"

#define SAMPLES 200
#define PERIOD 100000

// Intel's version 1 and 4: four general counters, three fixed ones. A register
// takes as long as a real one, which is one instruction and its fixup.
static u64 registers[256];
static u32 version;

static u64 *at(u32 msr)
{
    return &registers[msr & 255];
}

// A read shows what has not been acknowledged.
static bool read(u32 msr, u64 *value)
{
    if (msr == MSR_GLOBAL_STATUS)
        *at(msr) &= ~*at(MSR_GLOBAL_OVF_CTRL);
    *value = *at(msr);
    return true;
}

static bool write(u32 msr, u64 value)
{
    *at(msr) = value;
    return true;
}

// About as many instructions as a real register takes: in the NMI what has been
// acknowledged is cleared when the local APIC is unmasked.
static NOTRACE u64 get(u32 msr)
{
    return *at(msr);
}

static NOTRACE void set(u64 value, u32 msr)
{
    *at(msr) = value;
}

static NOTRACE void unmask(void)
{
    *at(MSR_GLOBAL_STATUS) = 0;
    pmu_machine_io.unmask_lvt();
}

static void count(u32 msr, u64 bit)
{
    u64 before = *at(msr), mask = (1ull << 48) - 1;
    *at(msr) = (before + 10000) & mask;
    if (*at(msr) < before)
        *at(MSR_GLOBAL_STATUS) |= bit;
}

static void work(void)
{
    u64 open = version > 1 ? *at(MSR_GLOBAL_CTRL) : ~0ull;
    for (u32 i = 0; i < 4; i++) {
        if (*at(MSR_PERFEVTSEL0 + i) & SELECT_EN && open & 1u << i)
            count(MSR_PERFCTR0 + i, 1u << i);
    }
    for (u32 i = 0; i < 3; i++) {
        u64 bit = 1ull << (GLOBAL_FIXED_SHIFT + i);
        if (*at(MSR_FIXED_CTR_CTRL) >> (FIXED_BITS * i) & 3 && open & bit)
            count(MSR_FIXED_CTR0 + i, bit);
    }
}

static void cpuid_of(u32 leaf, u32 subleaf UNUSED, u32 r[4])
{
    static const char vendor[] = "GenuntelineI"; // EBX, ECX, EDX
    if (!leaf) {
        r[0] = 0xa;
        memcpy(&r[1], vendor, 12);
    } else if (leaf == 1) {
        r[0] = 0x506e3; // Skylake
    } else if (leaf == 0xa) {
        r[0] = version | 4 << 8 | 48 << 16 | 7 << 24;
        r[3] = version > 1 ? 3 | 48 << 5 : 0;
    }
}

// The local APIC is the machine's.
static struct pmu_io io = {
    .unmask_lvt = unmask,
    .read = read,
    .write = write,
    .get = get,
    .set = set,
    .cpuid = cpuid_of,
    .work = work,
};

// The counter in use has just passed 0: it interrupts.
static u32 sample_cost(void)
{
    u32 n = (u32)__builtin_ctz(pmu_this_cpu()->sampling);
    const struct pmu_counter *c = &pmu_this_cpu()->pmu.counter[n];
    *at(c->value) = 3;
    *at(MSR_GLOBAL_STATUS) = pmu_global_bits(1u << n);
    u32 t0 = (u32)rdtsc(), t1 = (u32)rdtsc();
    __asm__ volatile("int $2" ::: "memory", "cc");
    u32 t2 = (u32)rdtsc();
    return t2 - t1 - (t1 - t0);
}

static struct waitq readers = WAITQ_INIT(readers, "test");

static void measure(u32 of_version, u32 flags)
{
    version = of_version;
    memset(registers, 0, sizeof(registers));
    smp_call_all(pmu_detect_here, (void *)&io);
    expect(!pmu_sampling_why_not());
    struct sprofile_options o = {
        .size = sizeof(o), .period = PERIOD, .flags = flags, .source = "pmc"
    };
    struct stream *s;
    if (!expect_begun(session_begin(NULL, &o, &readers, &s)))
        return;
    struct task *own = s->profiler;
    s->profiler = NULL; // or the kernel task's samples are skipped
    u32 least = ~0u;
    for (u32 i = 0; i < SAMPLES; i++) {
        for (u32 k = 0; k < PERIOD; k++)
            barrier();
        least = MIN(least, sample_cost());
    }
    s->profiler = own;
    struct sprofile_info info;
    session_info(s, &info);
    expect(info.taken >= SAMPLES);
    session_end(s);
    log_printf("# pmc: version %u%s: a sample takes %u\n", of_version,
               flags & SPROFILE_O_RANDOM ? ", random" : "", least);
}

KERNEL_TEST(pmc_cost)
{
    if (cpu_count > 1 || !apic_present) {
        test_skip("the model is of one CPU, with a local APIC");
        return;
    }
    pmu_why_not();
    io.mask_lvt = pmu_machine_io.mask_lvt;
    measure(1, 0);
    measure(1, SPROFILE_O_RANDOM);
    measure(4, 0);
    measure(4, SPROFILE_O_RANDOM);
    smp_call_all(pmu_detect_here, (void *)&pmu_machine_io);
}
