// What an interrupt costs beside what the ledger books to it: the code from the
// first instruction of its entry to the ledger's first reading of the TSC, and
// from the last one to the interrupted instruction. Found by raising some with
// the INT instruction, which goes the same way (SDM vol. 3, 6.4.4); of several
// the cheapest, for anything may come in between.

#include "arch/irq.h"
#include "arch/nmi.h"
#include "arch/trap.h"
#include "kernel/time/ledger.h"

#define TRIES 4

static bool claim(struct nmi_user *user UNUSED,
                  const struct trapframe *tf UNUSED)
{
    return true;
}

// TSC cycles of `CODE`, without those of the two readings.
#define CYCLES_OF(CODE)                                        \
    ({                                                         \
        u32 least = ~0u, empty = ~0u;                          \
        for (u32 i = 0; i < TRIES; i++) {                      \
            u32 t0 = (u32)rdtsc(), t1 = (u32)rdtsc();          \
            u32 before = booked();                             \
            u32 t2 = (u32)rdtsc();                             \
            __asm__ volatile(CODE ::: "memory", "cc");         \
            u32 t3 = (u32)rdtsc();                             \
            empty = MIN(empty, t1 - t0);                       \
            least = MIN(least, t3 - t2 - (booked() - before)); \
        }                                                      \
        least > empty ? least - empty : 0;                     \
    })

static u32 booked(void)
{
    const struct ledger *l = this_ledger();
    return l->nmi_cycles + (u32)l->vectors[VECTOR_SPURIOUS].cycles;
}

struct entry_cost trap_entry_cost(void)
{
    static struct nmi_user measuring = { claim };
    struct entry_cost cost = { 0 };
    if (nmi_take(&measuring))
        return cost; // the machine is being stopped
    preempt_disable();
    u32 flags = irq_save();
    cost.nmi = cost.irq = CYCLES_OF("int $2");
    if (irq_name(VECTOR_SPURIOUS)[0])
        cost.irq = CYCLES_OF("int $0xff");
    irq_restore(flags);
    preempt_enable();
    nmi_give_back(&measuring);
    return cost;
}
_Static_assert(VECTOR_NMI == 2 && VECTOR_SPURIOUS == 0xff, "as above");
