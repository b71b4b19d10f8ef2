// PCI configuration mechanism 1 (PCI 3.0, 3.2.2.3.2): an address register and a
// data register. `config_lock` keeps the two accesses together.
#include "arch/i386/dev/pci_config.h"
#include "arch/i386/dev/port.h"
#include "kernel/sync/spinlock.h"

#define CONFIG_ADDRESS 0xcf8
#define CONFIG_DATA 0xcfc
#define CONFIG_ENABLE (1u << 31)

static struct spinlock config_lock = SPINLOCK_INIT("pci configuration");

static u32 address(const struct pci_function *f, u32 offset)
{
    assert(offset < 256 && offset % 4 == 0);
    return CONFIG_ENABLE | (u32)f->bus << 16 | (u32)f->device << 11 |
           (u32)f->function << 8 | offset;
}

bool pci_present(void)
{
    u32 flags = spin_lock_irq(&config_lock);
    u32 old = in32(CONFIG_ADDRESS);
    out32(CONFIG_ADDRESS, CONFIG_ENABLE);
    bool found = in32(CONFIG_ADDRESS) == CONFIG_ENABLE;
    out32(CONFIG_ADDRESS, old);
    spin_unlock_irq(&config_lock, flags);
    return found;
}

u32 pci_read(const struct pci_function *f, u32 offset)
{
    u32 flags = spin_lock_irq(&config_lock);
    out32(CONFIG_ADDRESS, address(f, offset));
    u32 value = in32(CONFIG_DATA);
    spin_unlock_irq(&config_lock, flags);
    return value;
}

void pci_write(const struct pci_function *f, u32 offset, u32 value)
{
    u32 flags = spin_lock_irq(&config_lock);
    out32(CONFIG_ADDRESS, address(f, offset));
    out32(CONFIG_DATA, value);
    spin_unlock_irq(&config_lock, flags);
}
