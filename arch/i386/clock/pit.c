// The 8254 interval timer: access to its registers (Intel 8254 data sheet).
//
// A counter is written and read in two halves, after a command that names it,
// so accesses must be exclusive. NMIs read the time too, and cannot wait for
// code that they have interrupted. `holder` is the CPU that has access: an NMI
// that finds its own CPU there gives up, and any other CPU spins.
#include "arch/cpu.h"
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/dev/port.h"

#define COUNTER(n) ((u16)(0x40 + (n)))
#define COMMAND 0x43

#define SELECT(counter) ((counter) << 6)
#define LOW_THEN_HIGH 0x30
#define MODE(mode) ((mode) << 1)
#define READ_BACK 0xc0
#define NO_COUNT 0x20  // in a read-back command: do not latch counts
#define NO_STATUS 0x10 // in a read-back command: do not latch statuses
#define READ_BACK_COUNTER(n) (2u << (n))
#define STATUS_NULL_COUNT 0x40
#define STATUS_OUT 0x80

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

static void command(u32 value)
{
    out8(COMMAND, (u8)value);
}

void pit_load(u32 counter, u32 mode, u32 count)
{
    command(SELECT(counter) | LOW_THEN_HIGH | MODE(mode));
    out8(COUNTER(counter), count & 0xff); // 65536 is written as 0
    out8(COUNTER(counter), (u8)(count >> 8));
}

// A counter without a count does not run.
void pit_halt(u32 counter)
{
    command(SELECT(counter) | LOW_THEN_HIGH | MODE(PIT_ONE_SHOT));
}

static u32 status(u32 counter)
{
    command(READ_BACK | NO_COUNT | READ_BACK_COUNTER(counter));
    return in8(COUNTER(counter));
}

bool pit_loaded(u32 counter)
{
    return !(status(counter) & STATUS_NULL_COUNT);
}

NOTRACE bool pit_out(u32 counter)
{
    return status(counter) & STATUS_OUT;
}

void pit_latch(u32 counters)
{
    command(READ_BACK | NO_STATUS | counters << 1);
}

u16 pit_read_latched(u32 counter)
{
    u8 low = in8(COUNTER(counter));
    return (u16)(low | in8(COUNTER(counter)) << 8);
}

u16 pit_read(u32 counter)
{
    pit_latch(1u << counter);
    return pit_read_latched(counter);
}
