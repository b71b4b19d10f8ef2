// Rendezvous of all CPUs (stop_machine). All other CPUs enter an interrupt
// handler and wait there. When all of them do, the caller, whose interrupts are
// off as well, calls the function. It must be the caller: until then it may
// still be sending the interrupt, or sending it again.
//
// `stop_machine_mutex`: one rendezvous at a time; two would deadlock, each
// waiting for CPUs that are held by the other.

#include "kernel/sched/stop_machine.h"
#include "kernel/base/log.h"

#include "arch/cpu.h"
#include "arch/text.h"
#include "kernel/sync/mutex.h"

static struct mutex stop_machine_mutex =
    MUTEX_INIT(stop_machine_mutex, "rendezvous");
static u64 longest; // TSC cycles; guarded by stop_machine_mutex

struct rendezvous {
    void (*fn)(void *arg);
    void *arg;
    u32 others, arrived, done;
};

static void meet(void *arg)
{
    assert_checked(!irqs_enabled());
    struct rendezvous *m = arg;
    __atomic_add_fetch(&m->arrived, 1, __ATOMIC_ACQ_REL);
    while (!__atomic_load_n(&m->done, __ATOMIC_ACQUIRE))
        cpu_relax();
}

static void run_when_all_wait(void *arg)
{
    struct rendezvous *m = arg;
    if (m->done || __atomic_load_n(&m->arrived, __ATOMIC_ACQUIRE) != m->others)
        return;
    m->fn(m->arg);
    __atomic_store_n(&m->done, 1, __ATOMIC_RELEASE);
}

void stop_machine(void (*fn)(void *arg), void *arg)
{
    assert(irqs_enabled());
    mutex_lock(&stop_machine_mutex);
    u32 flags = irq_save();
    u64 began = rdtsc();
    struct rendezvous m = { fn, arg, cpu_count - 1, 0, 0 };
    if (m.others)
        smp_call_others_while(meet, &m, run_when_all_wait);
    else
        fn(arg);
    longest = MAX(longest, rdtsc() - began);
    text_serialize(); // the other CPUs execute IRET
    irq_restore(flags);
    mutex_unlock(&stop_machine_mutex);
}

u64 stop_machine_longest(void)
{
    mutex_lock(&stop_machine_mutex);
    u64 cycles = longest;
    mutex_unlock(&stop_machine_mutex);
    return cycles;
}
