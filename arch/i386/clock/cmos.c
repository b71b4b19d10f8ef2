// CMOS memory of the RTC chip: an index port, bits 0-6 (bit 7 would mask NMIs
// and stays 0), and a data port.
//
// `cmos_lock` keeps index and data together. An NMI handler that acknowledges
// the RTC's periodic interrupt cannot take it: it reads the data port without
// setting the index. So the index selects register C ("parked") except during
// an access, and each access ends with a read of register C, in case the NMI
// handler read another register.
#include "arch/i386/clock/clock_private.h"
#include "arch/i386/dev/port.h"
#include "kernel/sync/spinlock.h"

#define CMOS_INDEX 0x70
#define CMOS_DATA 0x71
#define CMOS_INDEX_MASK 0x7f
#define REGISTER_C 0x0c

static struct spinlock cmos_lock = SPINLOCK_INIT("cmos");

static void park(void)
{
    spin_assert_held(&cmos_lock);
    out8(CMOS_INDEX, REGISTER_C);
    in8(CMOS_DATA);
}

static u8 read_at(u8 index)
{
    spin_assert_held(&cmos_lock);
    out8(CMOS_INDEX, index & CMOS_INDEX_MASK);
    return in8(CMOS_DATA);
}

static void write_at(u8 index, u8 value)
{
    spin_assert_held(&cmos_lock);
    out8(CMOS_INDEX, index & CMOS_INDEX_MASK);
    out8(CMOS_DATA, value);
}

NOTRACE void cmos_acknowledge(void)
{
    in8(CMOS_DATA);
}

u8 cmos_read(u8 index)
{
    u32 flags = spin_lock_irq(&cmos_lock);
    u8 value = read_at(index);
    park();
    spin_unlock_irq(&cmos_lock, flags);
    return value;
}

void cmos_write(u8 index, u8 value)
{
    u32 flags = spin_lock_irq(&cmos_lock);
    write_at(index, value);
    park();
    spin_unlock_irq(&cmos_lock, flags);
}

void cmos_change(u8 index, u8 mask, u8 value)
{
    u32 flags = spin_lock_irq(&cmos_lock);
    u8 old = read_at(index);
    write_at(index, (u8)((old & ~mask) | (value & mask)));
    park();
    spin_unlock_irq(&cmos_lock, flags);
}
