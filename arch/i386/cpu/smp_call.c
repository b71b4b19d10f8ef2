// Function calls on other CPUs by IPI, and stopping them.
//
// Each CPU has one request slot (struct arch_cpu): a caller keeps preemption
// disabled until its call is answered, so it never needs a second one. The
// caller writes the function, puts the targets into its own `call_pending`,
// then puts itself into each target's `call_from` and sends the IPI. A target
// takes the members of `call_from`, each word with one exchange, and, for each
// caller, runs the function and then removes itself from that caller's
// `call_pending`; after that it does not access the request.
//
// Two CPUs that call each other with interrupts off (in a panic) would
// deadlock: so a waiting caller serves requests itself.
//
// A caller that waits for long sends the IPI again, as it may have been lost. A
// target that receives it twice finds `call_from` empty the second time.

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

static struct cpu_set online; // CPUs that answer calls; atomic
u32 smp_stopper;

static void serve(u32 first, u32 from)
{
    for (; from; from &= from - 1) {
        struct arch_cpu *caller = cpus[first + (u32)__builtin_ctz(from)]->arch;
        caller->call_fn(caller->call_arg);
        cpu_set_remove_atomic(&caller->call_pending, this_cpu()->id);
    }
}

void smp_call_service(void)
{
    u32 *from = this_cpu()->arch->call_from.words;
    for (u32 i = 0; i < cpu_set_words; i++) {
        if (READ_ONCE(from[i]))
            serve(i * CPU_SET_WORD_BITS,
                  __atomic_exchange_n(&from[i], 0, __ATOMIC_ACQ_REL));
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
    cpu_set_add_atomic(&online, this_cpu()->id);
    if (!apic_present)
        return;
    irq_register_vector(VECTOR_CALL, call_interrupt, NULL, "function calls");
    irq_register_vector(VECTOR_RESCHEDULE, reschedule_interrupt, NULL,
                        "rescheduling");
}

void smp_call_join(u32 cpu)
{
    cpu_set_add_atomic(&online, cpu);
}

// Waits until all have answered or it is time to send again. The caller's
// interrupts may be off: then it serves other CPUs' requests itself.
static void wait_a_while(struct arch_cpu *own)
{
    u64 began = rdtsc(), while_cycles = clock_tsc_hz() / SENDS_PER_SECOND;
    while (!cpu_set_is_empty_acquire(&own->call_pending) &&
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
        if (cpu_set_is_empty_acquire(&own->call_pending))
            return;
        error_count(&sent_again);
        lapic_send_ipi_set(&own->call_pending, VECTOR_CALL);
        if (sends % SILENT_SENDS == 0)
            smp_call_unanswered(&own->call_pending, own->call_fn,
                                sends / SENDS_PER_SECOND);
    }
}

static void call_set(const struct cpu_set *set, void (*fn)(void *arg),
                     void *arg, void (*meanwhile)(void *arg))
{
    preempt_disable();
    struct cpu *c = this_cpu();
    struct arch_cpu *own = c->arch;
    struct cpu_set targets = cpu_set_and(set, &online);
    cpu_set_remove(&targets, c->id);
    if (cpu_set_is_empty(&targets)) {
        preempt_enable();
        return;
    }
    assert(!this_cpu_read(irq_depth) && cpu_set_is_empty(&own->call_pending));
    own->call_fn = fn;
    own->call_arg = arg;
    own->call_meanwhile = meanwhile;
    cpu_set_copy(&own->call_pending, &targets); // no target reads it yet
    CPU_SET_FOR_EACH(cpu, &targets)
    cpu_set_add_atomic(&cpus[cpu]->arch->call_from, c->id);
    lapic_send_ipi_set(&targets, VECTOR_CALL);
    wait_for_answers(own);
    preempt_enable();
}

void smp_call_set(const struct cpu_set *set, void (*fn)(void *arg), void *arg)
{
    call_set(set, fn, arg, NULL);
}

void smp_call_others(void (*fn)(void *arg), void *arg)
{
    call_set(&online, fn, arg, NULL);
}

void smp_call_others_while(void (*fn)(void *arg), void *arg,
                           void (*meanwhile)(void *arg))
{
    call_set(&online, fn, arg, meanwhile);
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
        smp_call_set(&(struct cpu_set){ { 1 } }, fn, arg);
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

// Removes those CPUs that have stopped. True: there are others.
static NOTRACE bool some_run(struct cpu_set *set)
{
    CPU_SET_FOR_EACH(cpu, set)
    {
        if (READ_ONCE(cpus[cpu]->arch->stopped))
            cpu_set_remove(set, cpu);
    }
    return !cpu_set_is_empty(set);
}

struct cpu_set smp_stop_others(void)
{
    struct cpu_set others = cpu_set_and(&online, &online);
    cpu_set_remove(&others, this_cpu()->id);
    if (cpu_set_is_empty(&others))
        return others;
    WRITE_ONCE(smp_stopper, this_cpu()->id + 1); // of two the later wins
    nmi_stop_others();
    for (u32 i = 0; i < STOP_SPINS && some_run(&others); i++) {
        if (i == STOP_SPINS / 2)
            nmi_stop_others(); // the first one may have been lost
        cpu_relax();
    }
    return others;
}
