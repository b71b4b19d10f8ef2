// The capabilities of a PCI function (PCI 3.0, 6.7), and its message registers:
// MSI and MSI-X (6.8).
#include "arch/i386/dev/pci_config.h"
#include "kernel/base/errno.h"

#define PCI_STATUS 0x04 // in the upper half
#define STATUS_CAPABILITIES (1u << 20)
#define PCI_CAPABILITIES 0x34
#define CAPABILITY_FIRST 0x40
#define CAPABILITIES_MAX 48u // that fit between 0x40 and 0x100
#define CAPABILITY_MSI 0x05
#define CAPABILITY_MSIX 0x11

#define MSI_ENABLE (1u << 16)
#define MSI_VECTORS (7u << 20) // 0: one
#define MSI_WIDE (1u << 23)
#define MSI_BYTES 16u // at most, without masks

#define MSIX_ENABLE (1u << 31)
#define MSIX_MASK (1u << 30)
#define MSIX_TABLE 4
#define MSIX_BYTES 12u
#define MSIX_BAR 7u
enum { ENTRY_ADDRESS, ENTRY_ADDRESS_HIGH, ENTRY_DATA, ENTRY_CONTROL, ENTRY };

struct message {
    u32 address, data;
};

// The list may be a circle.
u32 pci_capability(const struct pci_function *f, u32 id)
{
    if (!(pci_read(f, PCI_STATUS) & STATUS_CAPABILITIES))
        return 0;
    u32 offset = pci_read(f, PCI_CAPABILITIES) & 0xfc;
    for (u32 i = 0; i < CAPABILITIES_MAX && offset >= CAPABILITY_FIRST; i++) {
        u32 header = pci_read(f, offset);
        if ((header & 0xff) == id)
            return offset;
        offset = header >> 8 & 0xfc;
    }
    return 0;
}

static int set_msix(const struct pci_function *f, u32 at,
                    const struct message *m)
{
    u32 table = pci_read(f, at + MSIX_TABLE);
    struct pci_memory memory;
    u32 offset = table & ~MSIX_BAR, bar = table & MSIX_BAR;
    if (bar > 5 || !pci_memory(f, bar, &memory) ||
        (u64)offset + ENTRY * sizeof(u32) > memory.size)
        return -ENODEV;
    volatile u32 *entry = map_device(memory.base + offset, ENTRY * sizeof(u32));
    if (!entry)
        return -ENOSPC;
    u32 control = pci_read(f, at) | MSIX_ENABLE;
    pci_write(f, at, control | MSIX_MASK);
    entry[ENTRY_ADDRESS] = m->address;
    entry[ENTRY_ADDRESS_HIGH] = 0;
    entry[ENTRY_DATA] = m->data;
    entry[ENTRY_CONTROL] = 0; // not masked
    pci_write(f, at, control & ~MSIX_MASK);
    return 0;
}

static void set_msi(const struct pci_function *f, u32 at,
                    const struct message *m)
{
    u32 control = pci_read(f, at) & ~MSI_VECTORS;
    u32 data_at = at + (control & MSI_WIDE ? 12 : 8);
    pci_write(f, at + 4, m->address);
    if (control & MSI_WIDE)
        pci_write(f, at + 8, 0);
    pci_write(f, data_at, (pci_read(f, data_at) & 0xffff0000u) | m->data);
    pci_write(f, at, control | MSI_ENABLE);
}

bool pci_has_messages(const struct pci_function *f)
{
    return pci_capability(f, CAPABILITY_MSIX) ||
           pci_capability(f, CAPABILITY_MSI);
}

int pci_set_message(const struct pci_function *f, u32 address, u32 data)
{
    u32 msix = pci_capability(f, CAPABILITY_MSIX);
    u32 msi = pci_capability(f, CAPABILITY_MSI);
    struct message m = { address, data };
    if (msix && msix + MSIX_BYTES <= 256 && set_msix(f, msix, &m) == 0)
        return 0;
    if (!msi || msi + MSI_BYTES > 256)
        return -ENODEV;
    set_msi(f, msi, &m);
    return 0;
}
