// Performance counters of this machine. Where it has none (QEMU, Bochs), each
// call reports that; tests/host/test_pmu_*.c tests the register logic on the
// host.

#include "tests/kernel/test.h"

#include "arch/cpu.h"
#include "arch/nmi.h"
#include "arch/pmu.h"
#include "kernel/base/errno.h"
#include "lib/string.h"

#define PERIOD 100000

static const struct pmu_event instructions = { .id = PMU_INSTRUCTIONS,
                                               .kernel = true };
static u32 dues[CPU_MAX];

static u64 due(struct pmu_sampling *s UNUSED, const struct trapframe *tf UNUSED,
               u32 periods)
{
    ADD_ONCE(dues[this_cpu()->id], periods);
    return PERIOD;
}

static struct pmu_sampling sampling = {
    .event = { .id = PMU_INSTRUCTIONS, .kernel = true },
    .period = PERIOD,
    .due = due,
};

// Two instructions per turn.
static NOINLINE void loop(u32 turns)
{
    __asm__ volatile("1: decl %0; jnz 1b" : "+r"(turns));
}

KERNEL_TEST(pmu_says_why_not)
{
    const char *why_not = pmu_sampling_why_not();
    struct pmu_counting *c;
    if (!why_not)
        return;
    log_printf("# sample source pmc: %s\n", why_not);
    expect(why_not[0]);
    expect(strlen(why_not) < 64); // the size of system.profile's field
    expect(pmu_sampling_start(&sampling) == -ENODEV);
    if (pmu_why_not())
        expect(pmu_counting_create(&instructions, 1, &c) == -ENODEV);
}

// Every CPU has counters that can count something, or says why not.
KERNEL_TEST(pmu_says_what_there_is)
{
    for (u32 i = 0; i < cpu_count; i++) {
        struct pmu_info info;
        pmu_info(i, &info);
        if (info.why_not) {
            expect(pmu_why_not() && !info.general && !info.fixed);
            continue;
        }
        log_printf("# CPU %u: %s, %s, %u + %u counters of %u bits, %u taken, "
                   "%u events\n",
                   i, info.interface, info.model, info.general, info.fixed,
                   info.width, info.taken, info.events);
        expect(info.general + info.fixed && info.width > 32);
        expect(info.events >= 2 && info.events <= PMU_RAW);
    }
    for (u32 id = 0; id < PMU_RAW; id++) {
        struct pmu_event e;
        expect(!pmu_event_parse(pmu_event_name(id), &e) && e.id == id);
    }
}

KERNEL_TEST(pmu_samples_every_period)
{
    if (pmu_sampling_why_not()) {
        test_skip("no performance counters that interrupt");
        return;
    }
    u32 unclaimed = nmi_unclaimed(0);
    expect(!pmu_sampling_start(&sampling));
    preempt_disable();
    u32 before = READ_ONCE(dues[this_cpu()->id]);
    loop(50 * PERIOD);
    u32 taken = READ_ONCE(dues[this_cpu()->id]) - before;
    preempt_enable();
    expect(taken >= 99 && taken <= 110);
    pmu_sampling_stop(&sampling);
    before = READ_ONCE(dues[0]);
    loop(10 * PERIOD);
    expect(READ_ONCE(dues[0]) == before);
    expect(nmi_unclaimed(0) == unclaimed);
}

KERNEL_TEST(pmu_counts_instructions)
{
    struct pmu_counting *c;
    struct pmu_count count;
    if (pmu_why_not()) {
        test_skip("no performance counters");
        return;
    }
    expect(!pmu_counting_create(&instructions, 1, &c));
    u32 flags = irq_save();
    pmu_counting_in(c);
    loop(1000000);
    pmu_counting_out(c);
    irq_restore(flags);
    loop(1000000);
    pmu_counting_read(c, &count);
    expect(count.value >= 2000000 && count.value < 2001000);
    expect(count.enabled == count.running && count.running);
    pmu_counting_destroy(c);
}
