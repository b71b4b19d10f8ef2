// NMI ownership. The NMI owner is one pointer, which each NMI reads once;
// atomic exchanges of it suffice.

#include "arch/nmi.h"

#include "arch/call_trace.h"
#include "arch/clock.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/irq/apic.h"
#include "arch/irq.h"
#include "kernel/base/errno.h"
#include "kernel/base/errors.h"
#include "kernel/base/log.h"
#include "kernel/debug/kcsan.h"
#include "kernel/time/ledger_nmi.h"

#define AGAIN_MS 500u   // an NMI without an answer is sent again
#define SILENT_MS 5000u // and then given up

ERROR_COUNTER(sent_again, "NMIs, sent again", "after 0.5 s, once");

static bool refuse(struct nmi_owner *owner UNUSED,
                   const struct trapframe *tf UNUSED)
{
    return false;
}

static struct nmi_owner no_owner = { refuse };
static struct nmi_owner *nmi_owner = &no_owner; // atomic

// Atomically replaces the owner `from` by `to`; false: `from` was not the
// owner.
static bool change_owner(struct nmi_owner *from, struct nmi_owner *to)
{
    return __atomic_compare_exchange_n(&nmi_owner, &from, to, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

int nmi_claim(struct nmi_owner *owner)
{
    return change_owner(&no_owner, owner) ? 0 : -EBUSY;
}

void nmi_release(struct nmi_owner *owner)
{
    change_owner(owner, &no_owner);
}

// Halts this CPU, unless it is the one that stops the others: that one has a
// report to print and continues. NMIs on it have no further effect.
static bool halt_here(struct nmi_owner *owner UNUSED,
                      const struct trapframe *tf UNUSED)
{
    if (READ_ONCE(smp_stopper) == this_cpu()->id + 1)
        return true;
    WRITE_ONCE(this_cpu()->arch->stopped, true);
    cpu_halt_forever();
}

void nmi_stop_others(void)
{
    static struct nmi_owner stopping = { halt_here };
    __atomic_store_n(&nmi_owner, &stopping, __ATOMIC_RELEASE); // never released
    nmi_send_others();
}

// To each online CPU in turn, not by the all-but-self shorthand: that would
// reach CPUs that are not used (trampoline.S), and wake those that firmware has
// left halted.
void nmi_send_others(void)
{
    for (u32 i = 0; i < cpu_count; i++) {
        if (cpus[i] != this_cpu() && READ_ONCE(cpus[i]->online))
            lapic_send_nmi(cpus[i]->apic_id);
    }
}

// --- what an NMI does but rarely, besides calling the owner

static u32 duties; // atomic: calls on other CPUs and traces that are going on

static void add_duty(void)
{
    __atomic_add_fetch(&duties, 1, __ATOMIC_RELEASE);
}

static void end_duty(void)
{
    __atomic_sub_fetch(&duties, 1, __ATOMIC_RELEASE);
}

void nmi_watch_stubs(bool on)
{
    if (on)
        add_duty();
    else
        end_duty();
}

// --- calls on other CPUs, by NMI

static void (*call_fn)(const struct trapframe *tf); // set before `call_pending`
static struct cpu_set call_pending; // atomic: CPUs that have not answered
// Atomic: CPUs that were sent a second NMI, and have not taken one since that
// nobody waits for. (If the two merge, or one is lost, none comes: then one
// that is unexpected passes for it, until the next call.)
static struct cpu_set sent_twice;

static bool answer(const struct trapframe *tf)
{
    u32 own = this_cpu()->id;
    if (!cpu_set_has(&call_pending, own)) // x86 keeps the order of loads
        return false;
    barrier();
    call_fn(tf);
    cpu_set_remove_atomic(&call_pending, own);
    return true;
}

// Sends the NMI again to CPUs that have not answered: it may have been lost.
static void send_again(void)
{
    CPU_SET_FOR_EACH(cpu, &call_pending)
    {
        error_count(&sent_again);
        cpu_set_add_atomic(&sent_twice, cpu);
        lapic_send_nmi(cpus[cpu]->apic_id);
    }
}

// False: some have not answered in that time.
static bool all_answer(u32 ms)
{
    u64 began = rdtsc(), cycles = clock_tsc_hz() / 1000 * ms;
    while (!cpu_set_is_empty_acquire(&call_pending)) {
        if (rdtsc() - began > cycles)
            return false;
        cpu_relax();
    }
    return true;
}

// Removes from `others` those that have answered.
static void call_others(struct cpu_set *others)
{
    cpu_set_copy(&sent_twice, &CPU_SET_EMPTY);
    barrier(); // x86 keeps the order of stores: `call_fn` is set
    cpu_set_copy(&call_pending, others);
    nmi_send_others();
    if (!all_answer(AGAIN_MS)) {
        send_again();
        all_answer(SILENT_MS);
    }
    for (u32 i = 0; i < cpu_set_words; i++)
        others->words[i] =
            __atomic_exchange_n(&call_pending.words[i], 0, __ATOMIC_ACQ_REL);
}

struct cpu_set nmi_call_others(void (*fn)(const struct trapframe *tf))
{
    struct cpu_set others = CPU_SET_EMPTY;
    for (u32 i = 0; i < cpu_count; i++) {
        if (cpus[i] != this_cpu() && READ_ONCE(cpus[i]->online))
            cpu_set_add(&others, i);
    }
    if (cpu_set_is_empty(&others))
        return others;
    call_fn = fn;
    add_duty();
    call_others(&others);
    end_duty();
    return others;
}

u32 nmi_unclaimed(u32 cpu)
{
    return READ_ONCE(cpus[cpu]->arch->nmis);
}

static u32 unclaimed_on_all(void)
{
    u32 sum = 0;
    for (u32 i = 0; i < cpu_count; i++)
        sum += nmi_unclaimed(i);
    return sum;
}
ERROR_COUNTER_READ(unclaimed_count, "unexpected NMIs",
                   "none; see the kernel log", unclaimed_on_all);

void nmi_log_unclaimed(struct arch_cpu *a)
{
    u32 nmis = READ_ONCE(a->nmis);
    log_printf("cpu%u: %u unexpected NMI%s\n", this_cpu()->id,
               nmis - a->nmis_logged, nmis - a->nmis_logged == 1 ? "" : "s");
    a->nmis_logged = nmis;
}

// Logging takes a lock, so it is deferred to the end of the next interrupt.
static NOINLINE void unclaimed(void)
{
    struct arch_cpu *a = this_cpu()->arch;
    if (cpu_set_remove_atomic(&sent_twice, this_cpu()->id))
        return;
    ADD_ONCE(a->nmis, 1);
    WRITE_ONCE(a->deferred, true);
}

// Code with an odd `seq` (entry.S, account_now_plus_minus) that reads the TSC
// at `now`, changes accounts from `change` on and ends at `end`.
struct switch_code {
    u32 now, change, end;
    enum ledger_switch to;
};
extern const struct switch_code __start_set_ledger_switches[],
    __stop_set_ledger_switches[];

enum ledger_switch trap_interrupted_switch(struct trapframe *tf)
{
    for (const struct switch_code *s = __start_set_ledger_switches;
         s < __stop_set_ledger_switches; s++) {
        if (tf->eip - s->now >= s->end - s->now)
            continue;
        if (tf->eip >= s->change)
            return s->to;
        tf->eip = s->now;
        return NOT_SWITCHING;
    }
    return SWITCHING;
}

// The NMI may have interrupted any instruction: no locks, and writes to this
// CPU's own data only.
static ALWAYS_INLINE void handle(struct trapframe *tf, bool has_duties)
{
    u32 freezes = READ_ONCE(ledger_freezes) & ~1u; // odd: never matches
    u32 began = (u32)rdtsc();
    this_ledger()->nmi_began = began;
    kcsan_nmi(true);
    irq_count_up(VECTOR_NMI);
    struct nmi_owner *owner = __atomic_load_n(&nmi_owner, __ATOMIC_ACQUIRE);
    bool answered = has_duties && answer(tf);
    if (unlikely(!owner->fn(owner, tf)) && !answered)
        unclaimed();
    if (!has_duties) // `tf` again, so that no register has to keep it
        tf = (struct trapframe *)((u32 *)__builtin_frame_address(0) + 2);
    u32 spent = ledger_nmi(freezes, began, tf);
    if (has_duties && call_trace_is_stub(trap_pc(tf)))
        call_trace_nmi(trap_pc(tf), spent);
    kcsan_nmi(false);
}

static NOINLINE void handle_with_duties(struct trapframe *tf)
{
    handle(tf, true);
}

// Called from entry.S, where the trap frame is on top of the stack: here it is
// above our caller's ebp and the return address.
void trap_nmi(struct trapframe *tf)
{
    if (unlikely(READ_ONCE(duties)))
        handle_with_duties(tf);
    else
        handle(tf, false);
}
