// The interval timer: exclusive access to its registers (pit_chip.c).
//
// A counter is written and read in two halves, after a command that names it,
// so accesses must be exclusive. NMIs read the time too, and cannot wait for
// code that they have interrupted. `holder` is the CPU that has access: an NMI
// that finds its own CPU there gives up, and any other CPU spins.
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"

static u32 holder; // atomic; a CPU's number + 1, 0: none

NOTRACE bool pit_enter(u32 *flags)
{
    *flags = irq_save();
    u32 self = this_cpu()->id + 1, expected = 0;
    while (!__atomic_compare_exchange_n(&holder, &expected, self, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        if (expected == self) {
            irq_restore(*flags);
            return false;
        }
        expected = 0;
        cpu_relax();
    }
    return true;
}

NOTRACE void pit_leave(u32 flags)
{
    __atomic_store_n(&holder, 0, __ATOMIC_RELEASE);
    irq_restore(flags);
}
