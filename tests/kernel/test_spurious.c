// Unexpected interrupts, of every vector: they are counted and ignored. NMIs
// that the kernel has sent are none.

#include "arch/i386/irq/apic.h"
#include "arch/irq.h"
#include "arch/nmi.h"
#include "arch/trap.h"
#include "kernel/base/errors.h"
#include "kernel/sched/thread.h"
#include "kernel/time/ledger.h"
#include "lib/string.h"
#include "tests/kernel/test.h"

#define FIRST 32u

// INT VECTOR; RET, three bytes each.
__asm__(".pushsection .text\n"
        "raise_stubs:\n"
        ".set raised, 0\n"
        ".rept 256\n"
        ".byte 0xcd, raised\n"
        "ret\n"
        ".set raised, raised + 1\n"
        ".endr\n"
        ".popsection\n");
extern const u8 raise_stubs[];

static void raise(u32 vector)
{
    const u8 *stub = raise_stubs + 3 * vector;
    __asm__ volatile("call *%0" ::"r"(stub) : "memory", "cc");
}

static bool has_meaning(u32 vector)
{
    return vector == VECTOR_SYSCALL ||
           (irq_name(vector)[0] && vector != LEDGER_SAMPLING &&
            vector != VECTOR_SPURIOUS);
}

// The counter with this name; 0 if there is none.
static u32 error_counter_named(const char *name)
{
    LINKER_SET_FOR_EACH(const struct error_counter, e, error_counters) {
        if (!strcmp((*e)->name, name))
            return error_counter_read(*e);
    }
    return 0;
}

static u32 unexpected(void)
{
    return error_counter_named("unexpected interrupts");
}

static u32 spurious(void)
{
    return error_counter_named("spurious interrupts, LAPIC") +
           error_counter_named("spurious interrupts, 8259");
}

// Waits for the count of another CPU.
static bool becomes(u32 (*read)(void), u32 count)
{
    u64 deadline = clock_now_ns() + TEST_PATIENCE;
    while (read() < count && clock_now_ns() < deadline)
        cpu_relax();
    return read() == count;
}

// A vector from the LAPIC is in service until it is acknowledged. One without
// an EOI would block the vectors of lower priority, which the second round
// sends first.
static void send_all(const struct cpu *to)
{
    for (u32 v = FIRST; v < VECTORS; v++) {
        if (has_meaning(v))
            continue;
        u64 count = irq_count(to->id, v);
        u32 before = unexpected(), others = spurious();
        lapic_send_ipi(to->apic_id, v);
        expect(becomes(unexpected, before + 1) && spurious() == others);
        expect(irq_count(to->id, v) == count + 1);
    }
}

KERNEL_TEST(spurious_vectors_sent)
{
    if (!apic_present) {
        test_skip("no local APIC");
        return;
    }
    preempt_disable();
    for (u32 turn = 0; turn < 2; turn++) {
        send_all(this_cpu());
        if (cpu_count > 1)
            send_all(cpus[(this_cpu()->id + 1) % cpu_count]);
    }
    preempt_enable();
}

// An interrupt that is in service neither in the LAPIC nor in an 8259, raised
// by INT.
KERNEL_TEST(spurious_vectors_raised)
{
    u32 own_kind = 0;
    preempt_disable();
    for (u32 v = FIRST; v < VECTORS; v++) {
        if (has_meaning(v))
            continue;
        u64 count = irq_count(this_cpu()->id, v);
        u32 before = unexpected(), others = spurious();
        raise(v);
        expect(irq_count(this_cpu()->id, v) == count + 1);
        expect(unexpected() + spurious() == before + others + 1);
        own_kind += spurious() - others;
    }
    preempt_enable();
    u32 expected = apic_present ? 1 : 0;
    bool xt_pic = *irq_controller(VECTOR_DEVICE_FIRST) == 'X';
    for (u32 irq = 7; xt_pic && irq <= 15;
         irq += 8) // (Another test takes IRQ 7.)
        expected += !has_meaning(VECTOR_DEVICE_FIRST + irq);
    expect(own_kind == expected);
}

// --- NMIs that are sent again: the second one finds nobody waiting for it

#define SLOW_MS 700u // until the answer: the second one has been sent
#define TRIES 20u    // where the host may hold up the CPU that waits

static void answer_slowly(const struct trapframe *tf UNUSED)
{
    u64 began = rdtsc(), cycles = clock_tsc_hz() / 1000 * SLOW_MS;
    bool slow = this_cpu()->id == cpu_count - 1;
    while (slow && rdtsc() - began < cycles)
        cpu_run_instructions(1000);
}

KERNEL_TEST(spurious_nmis_are_not_those_sent_again)
{
    if (!apic_present || cpu_count == 1) {
        test_skip("one CPU alone");
        return;
    }
    u32 again = error_counter_named("NMIs, sent again"), tries = 0;
    u32 before = error_counter_named("unexpected NMIs");
    struct cpu_set affinity = current->affinity;
    expect(!run_on(current, 0));
    do
        nmi_call_others(answer_slowly);
    while (error_counter_named("NMIs, sent again") == again && ++tries < TRIES);
    expect(error_counter_named("NMIs, sent again") > again);
    smp_quiesce_others(); // NMIs are taken ahead of IPIs
    expect(error_counter_named("unexpected NMIs") == before);
    thread_set_affinity(current, &affinity);
}

static u32 exceptions(void)
{
    return error_counter_named("unexpected exceptions");
}

// SDM vol. 3, table 6-1.
KERNEL_TEST(spurious_exceptions)
{
    static const u8 reserved[] = { 15, 22, 23, 24, 25, 26, 27, 28, 31 };
    preempt_disable();
    for (u32 i = 0; i < ARRAY_SIZE(reserved); i++) {
        u32 before = exceptions();
        raise(reserved[i]);
        expect(exceptions() == before + 1);
        if (!apic_present || reserved[i] < 16)
            continue;
        lapic_send_ipi(this_cpu()->apic_id, reserved[i]);
        expect(becomes(exceptions, before + 2));
    }
    preempt_enable();
}
