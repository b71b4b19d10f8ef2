// Function calls on other CPUs by IPI, and stopping them.
//
// Each CPU has one request slot (struct arch_cpu): a caller keeps preemption
// disabled until its call is answered, so it never needs a second one. The
// caller writes the function, sets the targets' bits in its own `call_pending`,
// then sets its bit in each target's `call_from` and sends the IPI. A target
// takes all bits of `call_from` with one exchange and, for each caller, runs
// the function and then clears its own bit in that caller's `call_pending`;
// after that it does not access the request.
//
// Two CPUs that call each other with interrupts off (in a panic) would
// deadlock: so a waiting caller serves requests itself.
//
// A caller that waits for long sends the IPI again, as it may have been lost. A
// target that receives it twice finds no bit set the second time.

#include "arch/clock.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/irq/apic.h"
#include "arch/irq.h"
#include "kernel/base/errors.h"
#include "kernel/base/log.h"

#define STOP_SPINS 20000000u // a CPU stuck in firmware may never answer

#define SENDS_PER_SECOND 10u                  // while an answer is missing
#define SILENT_SENDS (10u * SENDS_PER_SECOND) // then it is reported

ERROR_COUNTER(sent_again, "calls of CPUs, sent again",
              "after 0.1 s without an answer; after 10 s it is reported");

static u32 online_mask; // CPUs that answer calls
u32 smp_stopper;

void smp_call_service(void)
{
    struct arch_cpu *own = this_cpu()->arch;
    u32 from = __atomic_exchange_n(&own->call_from, 0, __ATOMIC_ACQ_REL);
    while (from) {
        struct arch_cpu *caller = cpus[__builtin_ctz(from)].arch;
        from &= from - 1;
        caller->call_fn(caller->call_arg);
        __atomic_fetch_and(&caller->call_pending, ~(1u << this_cpu()->id),
                           __ATOMIC_RELEASE);
    }
}

static void call_interrupt(void *arg UNUSED)
{
    smp_call_service();
}

static void reschedule_interrupt(void *arg UNUSED)
{
    sched_reschedule_interrupt();
}

void smp_call_init(void)
{
    online_mask = 1u << this_cpu()->id;
    if (!apic_present)
        return;
    irq_register_vector(VECTOR_CALL, call_interrupt, NULL, "function calls");
    irq_register_vector(VECTOR_RESCHEDULE, reschedule_interrupt, NULL,
                        "rescheduling");
}

void smp_call_join(u32 cpu)
{
    __atomic_fetch_or(&online_mask, 1u << cpu, __ATOMIC_RELEASE);
}

// Waits until all have answered or it is time to send again. The caller's
// interrupts may be off: then it serves other CPUs' requests itself.
static void wait_a_while(struct arch_cpu *own)
{
    u64 began = rdtsc(), while_cycles = clock_tsc_hz() / SENDS_PER_SECOND;
    while (__atomic_load_n(&own->call_pending, __ATOMIC_ACQUIRE) &&
           rdtsc() - began < while_cycles) {
        if (own->call_meanwhile)
            own->call_meanwhile(own->call_arg);
        if (!irqs_enabled())
            smp_call_service();
        cpu_relax();
    }
}

static void wait_for_answers(struct arch_cpu *own)
{
    for (u32 sends = 1;; sends++) {
        wait_a_while(own);
        u32 silent = __atomic_load_n(&own->call_pending, __ATOMIC_ACQUIRE);
        if (!silent)
            return;
        error_count(&sent_again);
        lapic_send_ipi_mask(silent, VECTOR_CALL);
        if (sends % SILENT_SENDS == 0)
            smp_call_unanswered(silent, own->call_fn, sends / SENDS_PER_SECOND);
    }
}

static void call_mask(u32 mask, void (*fn)(void *arg), void *arg,
                      void (*meanwhile)(void *arg))
{
    preempt_disable();
    struct cpu *c = this_cpu();
    struct arch_cpu *own = c->arch;
    mask &= READ_ONCE(online_mask) & ~(1u << c->id);
    if (!mask) {
        preempt_enable();
        return;
    }
    assert(!this_cpu_read(irq_depth) && !own->call_pending);
    own->call_fn = fn;
    own->call_arg = arg;
    own->call_meanwhile = meanwhile;
    __atomic_store_n(&own->call_pending, mask, __ATOMIC_RELEASE);
    for (u32 left = mask; left; left &= left - 1)
        __atomic_fetch_or(&cpus[__builtin_ctz(left)].arch->call_from,
                          1u << c->id, __ATOMIC_RELEASE);
    lapic_send_ipi_mask(mask, VECTOR_CALL);
    wait_for_answers(own);
    preempt_enable();
}

void smp_call_mask(u32 mask, void (*fn)(void *arg), void *arg)
{
    call_mask(mask, fn, arg, NULL);
}

void smp_call_others(void (*fn)(void *arg), void *arg)
{
    call_mask(~0u, fn, arg, NULL);
}

void smp_call_others_while(void (*fn)(void *arg), void *arg,
                           void (*meanwhile)(void *arg))
{
    call_mask(~0u, fn, arg, meanwhile);
}

static void call_here(void (*fn)(void *arg), void *arg)
{
    u32 flags = irq_save();
    fn(arg);
    irq_restore(flags);
}

void smp_call_all(void (*fn)(void *arg), void *arg)
{
    preempt_disable();
    call_here(fn, arg);
    smp_call_others(fn, arg);
    preempt_enable();
}

void smp_call_boot_cpu(void (*fn)(void *arg), void *arg)
{
    preempt_disable();
    if (this_cpu()->id == 0)
        call_here(fn, arg);
    else
        smp_call_mask(1, fn, arg);
    preempt_enable();
}

static void nothing(void *arg UNUSED)
{
}

void smp_quiesce_others(void)
{
    smp_call_others(nothing, NULL);
}

void smp_reschedule(struct cpu *cpu)
{
    if (cpu != this_cpu())
        lapic_send_ipi(cpu->apic_id, VECTOR_RESCHEDULE);
}

// Those CPUs of `mask` that have not stopped.
static NOTRACE u32 running_of(u32 mask)
{
    u32 running = 0;
    for (; mask; mask &= mask - 1) {
        if (!READ_ONCE(cpus[__builtin_ctz(mask)].arch->stopped))
            running |= mask & -mask;
    }
    return running;
}

u32 smp_stop_others(void)
{
    u32 others = READ_ONCE(online_mask) & ~(1u << this_cpu()->id);
    if (!others)
        return 0;
    WRITE_ONCE(smp_stopper, this_cpu()->id + 1); // of two the later wins
    nmi_stop_others();
    for (u32 i = 0; i < STOP_SPINS && running_of(others); i++) {
        if (i == STOP_SPINS / 2)
            nmi_stop_others(); // the first one may have been lost
        cpu_relax();
    }
    return running_of(others);
}
