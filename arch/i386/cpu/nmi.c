// NMIs: whose they are. The handler is one word, read by each NMI as it is at
// that moment; exchanges of it need no more than atomicity.

#include "arch/nmi.h"

#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/irq/apic.h"
#include "arch/irq.h"
#include "kernel/debug/kcsan.h"
#include "kernel/errno.h"
#include "kernel/init/log.h"
#include "kernel/time/ledger.h"

static nmi_handler_t nmi_handler; // atomic; NULL: nobody wants them

int nmi_take(nmi_handler_t handler)
{
    nmi_handler_t none = NULL;
    bool taken =
        __atomic_compare_exchange_n(&nmi_handler, &none, handler, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    return taken ? 0 : -EBUSY;
}

void nmi_give_back(void)
{
    __atomic_store_n(&nmi_handler, NULL, __ATOMIC_RELEASE);
}

// One by one, not by the shorthand for all: firmware may have left CPUs halted
// that an NMI would wake.
void nmi_send_others(void)
{
    for (u32 i = 0; i < cpu_count; i++) {
        if (&cpus[i] != this_cpu() && READ_ONCE(cpus[i].online))
            lapic_send_nmi(cpus[i].apic_id);
    }
}

u32 nmi_unclaimed(u32 cpu)
{
    return READ_ONCE(cpus[cpu].arch->nmis);
}

// An NMI cannot tell by itself: the log takes a lock.
void nmi_log_unclaimed(struct arch_cpu *a)
{
    u32 nmis = READ_ONCE(a->nmis);
    log_printf("cpu%u: %u unexpected NMI%s\n", this_cpu()->id,
               nmis - a->nmis_logged, nmis - a->nmis_logged == 1 ? "" : "s");
    a->nmis_logged = nmis;
}

// Entered from entry.S. It may have hit any instruction at all: no locks, and
// only this CPU's own data.
void trap_nmi(struct trapframe *tf)
{
    u32 began = (u32)rdtsc();
    if (unlikely(smp_stopping())) {
        if (READ_ONCE(smp_stopper) == this_cpu()->id + 1)
            return; // a sample's: who stops the others has a report to make
        WRITE_ONCE(this_cpu()->arch->stopped, true);
        cpu_halt_forever();
    }
    kcsan_nmi(true);
    irq_count_up(VECTOR_NMI);
    nmi_handler_t handler = __atomic_load_n(&nmi_handler, __ATOMIC_ACQUIRE);
    if (unlikely(!handler || !handler(tf)))
        ADD_ONCE(this_cpu()->arch->nmis, 1);
    ledger_nmi(began);
    kcsan_nmi(false);
}
