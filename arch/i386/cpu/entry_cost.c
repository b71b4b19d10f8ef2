// The entry and exit cost that the ledger's TSC readings do not cover: from the
// first instruction of an entry to the first reading, and from the last reading
// to the interrupted instruction. Measured by raising interrupts and system
// calls with the INT instruction; the minimum of several tries counts, since
// other interrupts may occur during one.

#include "arch/i386/cpu/arch_cpu.h"
#include "arch/irq.h"
#include "arch/nmi.h"
#include "arch/trap.h"
#include "kernel/base/log.h"
#include "kernel/base/thread.h"
#include "kernel/time/ledger.h"

#define TRIES 8

static NOTRACE bool measure_entry(struct nmi_owner *owner UNUSED,
                                  const struct trapframe *tf UNUSED)
{
    return true;
}

// TSC cycles of `CODE`, without the cost of the two readings.
#define CYCLES_OF(CODE)                                                  \
    ({                                                                   \
        u32 least = ~0u, empty = ~0u;                                    \
        for (u32 i = 0; i < TRIES; i++) {                                \
            u32 t0 = (u32)rdtsc(), t1 = (u32)rdtsc();                    \
            u32 before = accounted_cycles();                             \
            u32 t2 = (u32)rdtsc();                                       \
            __asm__ volatile(CODE ::: "memory", "cc");                   \
            u32 t3 = (u32)rdtsc();                                       \
            empty = MIN(empty, t1 - t0);                                 \
            least = MIN(least, t3 - t2 - (accounted_cycles() - before)); \
        }                                                                \
        least > empty ? least - empty : 0;                               \
    })

static u32 accounted_cycles(void)
{
    const struct ledger *l = this_ledger();
    return l->nmi_cycles + (u32)l->vectors[VECTOR_SPURIOUS].cycles;
}

struct entry_cost trap_entry_cost(void)
{
    static struct nmi_owner measuring = { measure_entry };
    struct entry_cost cost = { 0 };
    if (nmi_claim(&measuring))
        return cost; // the machine is being stopped
    preempt_disable();
    u32 flags = irq_save();
    cost.nmi = cost.irq = CYCLES_OF("int $2");
    this_cpu()->arch->measures_entry = true;
    if (irq_name(VECTOR_SPURIOUS)[0])
        cost.irq = CYCLES_OF("int $0xff");
    this_cpu()->arch->measures_entry = false;
    irq_restore(flags);
    preempt_enable();
    nmi_release(&measuring);
    return cost;
}
_Static_assert(VECTOR_NMI == 2 && VECTOR_SPURIOUS == 0xff, "as above");

#define SYS_GETPID 20

// The cycles charged to user time for one run of `CODE`, run in the kernel with
// interrupts off. It is the difference between two runs and one, so the switch
// to user time and back cancels out.
#define USER_CYCLES_OF(CODE)                                     \
    ({                                                           \
        u32 least[2] = { ~0u, ~0u };                             \
        for (u32 i = 0; i < 2 * TRIES; i++) {                    \
            u32 before = (u32)thread_base(t)->user, eax, turns;  \
            u32 flags = irq_save();                              \
            turns = i % 2 + 1;                                   \
            ledger_kernel_to_user(t);                            \
            __asm__ volatile("1: movl %2, %%eax\n\t" CODE "\n\t" \
                             "decl %1\n\t"                       \
                             "jnz 1b"                            \
                             : "=&a"(eax), "+r"(turns)           \
                             : "i"(SYS_GETPID)                   \
                             : "memory", "cc");                  \
            ledger_user_to_kernel(t);                            \
            irq_restore(flags);                                  \
            u32 *l = &least[i % 2];                              \
            *l = MIN(*l, (u32)thread_base(t)->user - before);    \
        }                                                        \
        least[1] > least[0] ? least[1] - least[0] : 0;           \
    })

// The INT instruction itself is user time, like any other instruction: the cost
// of a NOP is subtracted.
void trap_measure_outside(void)
{
    struct thread *t = current;
    assert(irqs_enabled());
    u32 call = USER_CYCLES_OF("int $0x80"), nothing = USER_CYCLES_OF("nop");

    ledger_set_outside(call > nothing ? call - nothing : 0,
                       trap_entry_cost().nmi);
}
