// The configuration space of PCI functions by mechanism 1 (PCI Local Bus 3.0,
// 3.2.2.3.2): 256 bytes of each. Any context; machine_reset uses it too.
#pragma once

#include "arch/pci.h"
#include "lib/types.h"

#define PCI_CONFIG_BYTES 256u
#define PCI_BUSES 256u
#define PCI_DEVICES 32u
#define PCI_FUNCTIONS 8u
#define PCI_NO_VENDOR 0xffffu

// The name of a function: bus << 8 | device << 3 | number.
#define PCI_FUNCTION(bus, device, number) \
    ((u32)(bus) << 8 | (u32)(device) << 3 | (u32)(number))
#define PCI_BUS(function) ((function) >> 8)
#define PCI_DEVICE(function) ((function) >> 3 & 0x1f)
#define PCI_NUMBER(function) ((function)&7)

// Registers of the header (PCI Local Bus 3.0, 6.1).
enum {
    PCI_VENDOR = 0x00,
    PCI_ID = 0x02,
    PCI_CLASS = 0x08, // class << 8 | revision, 32 bits
    PCI_HEADER = 0x0e,
    PCI_SECONDARY_BUS = 0x19, // of a bridge
    PCI_INTERRUPT = 0x3c,     // the line, then the pin
};
#define PCI_HEADER_TYPE 0x7fu
#define PCI_HEADER_BRIDGE 1u
#define PCI_HEADER_MANY 0x80u // the device has more than one function

// Whether the machine has mechanism 1.
bool pci_present(void);
// `bytes` is 1, 2 or 4; `at` + `bytes` must be within PCI_CONFIG_BYTES. What is
// not there reads as ones.
u32 pci_config_read(u32 function, u32 at, u32 bytes);
void pci_config_write(u32 function, u32 at, u32 bytes, u32 value);

// As above, of a function that was found: 32 bits at a multiple of 4.
static inline u32 pci_name(const struct pci_function *f)
{
    return PCI_FUNCTION(f->bus, f->device, f->function);
}
static inline u32 pci_read(const struct pci_function *f, u32 at)
{
    return pci_config_read(pci_name(f), at, 4);
}
static inline void pci_write(const struct pci_function *f, u32 at, u32 value)
{
    pci_config_write(pci_name(f), at, 4, value);
}

// Without giving the CPU away: sched is above arch.
void pci_wait_ms(u32 ms);

// Whether ACPI describes PCI Express's configuration space (MCFG), which all
// machines since about 2005 have.
bool pci_express_present(void);

// The offset of a capability (6.7); 0: it has none of this kind.
u32 pci_capability(const struct pci_function *f, u32 id);

// Whether it can interrupt by messages. Sets what it sends, by MSI-X (its first
// vector) or MSI, and lets it. 0, -ENODEV.
bool pci_has_messages(const struct pci_function *f);
int pci_set_message(const struct pci_function *f, u32 address, u32 data);
