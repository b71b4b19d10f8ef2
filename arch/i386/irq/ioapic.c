// I/O APICs (82093AA data sheet; ACPI 5.2.12.3).
//
// Each has a select and a data register: `ioapic_lock` guards the pair.
#include "arch/i386/irq/controllers.h"
#include "kernel/base/errno.h"
#include "kernel/sync/spinlock.h"

#define IOAPICS_MAX 32

#define REG_VERSION 1u
#define REG_REDIRECTION(pin) (0x10 + 2 * (pin)) // low half; high half is next

struct ioapic {
    volatile u32 *select, *data;
    u32 gsi_base, pins;
};

static struct spinlock ioapic_lock = SPINLOCK_INIT("ioapic");
static struct ioapic ioapics[IOAPICS_MAX];
static u32 ioapic_count;

static u32 ioapic_read(const struct ioapic *io, u32 reg)
{
    *io->select = reg;
    return *io->data;
}

static void ioapic_write(const struct ioapic *io, u32 reg, u32 value)
{
    *io->select = reg;
    *io->data = value;
}

// The entry is masked while its halves are inconsistent.
static void redirect(const struct ioapic *io, u32 pin, u32 low, u32 high)
{
    ioapic_write(io, REG_REDIRECTION(pin), REDIRECT_MASKED);
    ioapic_write(io, REG_REDIRECTION(pin) + 1, high);
    ioapic_write(io, REG_REDIRECTION(pin), low);
}

int ioapic_add(paddr_t base, u32 gsi_base)
{
    if (ioapic_count == IOAPICS_MAX)
        return -ENOSPC;
    struct ioapic *io = &ioapics[ioapic_count];
    io->select = map_device(base, 0x20);
    if (!io->select)
        return -ENOMEM;
    io->data = io->select + 4;
    u32 version = ioapic_read(io, REG_VERSION);
    if (version == 0 || version == ~0u) // the tables list one that is absent
        return -ENODEV;
    io->gsi_base = gsi_base;
    io->pins = (version >> 16 & 0xff) + 1;
    for (u32 pin = 0; pin < io->pins; pin++)
        redirect(io, pin, REDIRECT_MASKED, 0);
    ioapic_count++;
    return 0;
}

bool ioapic_present(void)
{
    return ioapic_count > 0;
}

u32 ioapic_end(void)
{
    u32 end = 0;
    for (u32 i = 0; i < ioapic_count; i++)
        end = MAX(end, ioapics[i].gsi_base + ioapics[i].pins);
    return end;
}

static struct ioapic *ioapic_of(const struct irq_line *line)
{
    for (u32 i = 0; i < ioapic_count; i++) {
        struct ioapic *io = &ioapics[i];
        if (line->gsi - io->gsi_base < io->pins) // false if below the base
            return io;
    }
    return NULL;
}

static int set_entry(const struct irq_line *line, u32 low, u32 high)
{
    struct ioapic *io = ioapic_of(line);
    if (!io)
        return -EINVAL;
    u32 flags = spin_lock_irq(&ioapic_lock);
    redirect(io, line->gsi - io->gsi_base, low, high);
    spin_unlock_irq(&ioapic_lock, flags);
    return 0;
}

int ioapic_route(const struct irq_line *line, const struct irq_message *m)
{
    u32 low = m->delivery | m->vector;
    low |= m->logical ? REDIRECT_LOGICAL : 0;
    low |= line->active_low ? REDIRECT_ACTIVE_LOW : 0;
    low |= line->level ? REDIRECT_LEVEL : 0;
    return set_entry(line, low, m->destination << 24);
}

int ioapic_mask(const struct irq_line *line)
{
    return set_entry(line, REDIRECT_MASKED, 0);
}

bool ioapic_entry(u32 gsi, u64 *entry)
{
    struct irq_line line = { .gsi = gsi };
    struct ioapic *io = ioapic_of(&line);
    if (!io)
        return false;
    u32 reg = REG_REDIRECTION(gsi - io->gsi_base);
    u32 flags = spin_lock_irq(&ioapic_lock);
    *entry = ioapic_read(io, reg) | (u64)ioapic_read(io, reg + 1) << 32;
    spin_unlock_irq(&ioapic_lock, flags);
    return true;
}
