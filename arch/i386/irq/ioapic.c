// I/O APICs (82093AA data sheet; ACPI 5.2.12.3).
//
// Each one has a select and a data register: `ioapic_lock` keeps them together.
#include "arch/i386/irq/controllers.h"
#include "kernel/errno.h"
#include "kernel/sync/spinlock.h"

#define IOAPICS_MAX 8

#define REG_VERSION 1u
#define REG_REDIRECTION(pin) (0x10 + 2 * (pin)) // low half; high half is next

#define REDIRECT_ACTIVE_LOW (1u << 13)
#define REDIRECT_LEVEL (1u << 15)
#define REDIRECT_MASKED (1u << 16)

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

// Masked while the two halves do not belong together.
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
    if (version == ~0u)
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

int ioapic_route(const struct irq_line *line, u32 vector, u32 apic_id)
{
    for (u32 i = 0; i < ioapic_count; i++) {
        struct ioapic *io = &ioapics[i];
        u32 pin = line->gsi - io->gsi_base;
        if (pin >= io->pins) // also when gsi is below the base
            continue;
        u32 low = vector;
        low |= line->active_low ? REDIRECT_ACTIVE_LOW : 0;
        low |= line->level ? REDIRECT_LEVEL : 0;
        u32 flags = spin_lock_irq(&ioapic_lock);
        redirect(io, pin, low, apic_id << 24);
        spin_unlock_irq(&ioapic_lock, flags);
        return 0;
    }
    return -EINVAL;
}
