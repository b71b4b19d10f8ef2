// The pair of 8259 interrupt controllers. With an I/O APIC they are only
// disabled: moved off the exceptions' vectors and masked.
#include "arch/i386/dev/port.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/sync/spinlock.h"

#define MASTER 0x20
#define SLAVE 0xa0
#define MASTER_MASK 0x21
#define SLAVE_MASK 0xa1

#define ICW1_INIT_ICW4 0x11
#define ICW3_SLAVE_ON_2 0x04 // master: which line; slave: its number
#define ICW3_SLAVE_ID 0x02
#define ICW4_8086 0x01
#define OCW2_EOI 0x20
#define OCW2_SPECIFIC_EOI(irq) (0x60 | (irq))
#define OCW3_READ_IRR 0x0a
#define OCW3_READ_ISR 0x0b
#define CASCADE_IRQ 2

static struct spinlock i8259_lock = SPINLOCK_INIT("i8259");
static u16 mask = 0xffff; // both chips' masks, cached

static void write_mask(void)
{
    out8(MASTER_MASK, mask & 0xff);
    out8(SLAVE_MASK, mask >> 8);
}

void i8259_init(u32 vector_base)
{
    out8(MASTER, ICW1_INIT_ICW4);
    out8(SLAVE, ICW1_INIT_ICW4);
    out8(MASTER_MASK, (u8)vector_base);
    out8(SLAVE_MASK, (u8)(vector_base + 8));
    out8(MASTER_MASK, ICW3_SLAVE_ON_2);
    out8(SLAVE_MASK, ICW3_SLAVE_ID);
    out8(MASTER_MASK, ICW4_8086);
    out8(SLAVE_MASK, ICW4_8086);
    mask = 0xffff;
    write_mask();
}

static u8 in_service(u16 chip)
{
    out8(chip, OCW3_READ_ISR);
    return in8(chip);
}

// A request that the slave withdraws before the CPU acknowledges it becomes a
// spurious interrupt 15 (8259A data sheet, "Interrupt Sequence"), which takes
// the cascade out of service. In v86 the CPU takes no interrupt, and the
// cascade stays in service: all interrupts but 0 and 1 are blocked.
static void end_lost_cascade(void)
{
    if (in_service(MASTER) & 1u << CASCADE_IRQ && !in_service(SLAVE))
        out8(MASTER, OCW2_SPECIFIC_EOI(CASCADE_IRQ));
}

void i8259_unmask(u32 irq)
{
    u32 flags = spin_lock_irq(&i8259_lock);
    end_lost_cascade();
    mask &= ~(1u << irq);
    if (irq >= 8)
        mask &= ~(1u << CASCADE_IRQ);
    write_mask();
    spin_unlock_irq(&i8259_lock, flags);
}

void i8259_mask(u32 irq)
{
    u32 flags = spin_lock_irq(&i8259_lock);
    mask |= 1u << irq;
    write_mask();
    spin_unlock_irq(&i8259_lock, flags);
}

bool i8259_is_real(u32 irq)
{
    bool real = in_service(irq < 8 ? MASTER : SLAVE) & 1u << irq % 8;
    // The master has a real request from its slave in service.
    if (!real && i8259_may_be_spurious(irq) && irq >= 8)
        out8(MASTER, OCW2_EOI);
    return real;
}

void i8259_eoi(u32 irq)
{
    if (irq >= 8)
        out8(SLAVE, OCW2_EOI);
    out8(MASTER, OCW2_EOI);
}

bool i8259_requested(u32 irq)
{
    u16 chip = irq < 8 ? MASTER : SLAVE;
    out8(chip, OCW3_READ_IRR);
    return in8(chip) & 1u << irq % 8;
}
