// PCI's configuration space by mechanism 1: an address register at port 0xcf8,
// whose doubleword is then at 0xcfc.
//
// `pci_lock` guards the pair. It is a device lock, because machine_reset may
// need the registers after another CPU was stopped with the lock held.
#include "arch/i386/dev/pci_config.h"
#include "arch/clock.h"
#include "arch/cpu.h"
#include "arch/i386/dev/device_lock.h"
#include "arch/i386/dev/port.h"

#define CONFIG_ADDRESS 0xcf8
#define CONFIG_DATA 0xcfc
#define CONFIG_ENABLE 0x80000000u

static struct spinlock pci_lock = SPINLOCK_INIT("pci");

bool pci_present(void)
{
    struct device_lock_state s = device_lock(&pci_lock);
    u32 before = in32(CONFIG_ADDRESS);
    out32(CONFIG_ADDRESS, CONFIG_ENABLE);
    bool present = in32(CONFIG_ADDRESS) == CONFIG_ENABLE;
    if (present)
        out32(CONFIG_ADDRESS, before);
    device_unlock(&pci_lock, s);
    return present;
}

static void select_register(u32 function, u32 at)
{
    out32(CONFIG_ADDRESS, CONFIG_ENABLE | function << 8 | (at & ~3u));
}

u32 pci_config_read(u32 function, u32 at, u32 bytes)
{
    struct device_lock_state s = device_lock(&pci_lock);
    select_register(function, at);
    u16 port = (u16)(CONFIG_DATA + (at & 3));
    u32 value = bytes == 1 ? in8(port) : bytes == 2 ? in16(port) : in32(port);
    device_unlock(&pci_lock, s);
    return value;
}

void pci_config_write(u32 function, u32 at, u32 bytes, u32 value)
{
    struct device_lock_state s = device_lock(&pci_lock);
    select_register(function, at);
    u16 port = (u16)(CONFIG_DATA + (at & 3));
    if (bytes == 1)
        out8(port, (u8)value);
    else if (bytes == 2)
        out16(port, (u16)value);
    else
        out32(port, value);
    device_unlock(&pci_lock, s);
}

void pci_wait_ms(u32 ms)
{
    u64 end = clock_now_ns() + ms * NSEC_PER_MSEC;
    while (clock_now_ns() < end)
        cpu_relax();
}
